export { readTextDocuments } from "./text-documents.ts";
