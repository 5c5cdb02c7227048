export { copyBytes } from "./copy-bytes.ts";
