export { encodeEvent, type ScalarEvent } from "./event.ts";
export { frameRecord, readRecords } from "./record.ts";
export { type TensorBoardOptions, tensorBoardFile } from "./tensorboard-file.ts";
