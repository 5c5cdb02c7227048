export { huggingFaceTokenizer } from "./hugging-face.ts";
export { type TiktokenOptions, tiktokenEncoding, tiktokenTokenizer } from "./tiktoken.ts";
export { loadTokenizer } from "./load-tokenizer.ts";
