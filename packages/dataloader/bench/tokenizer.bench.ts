import { byteTokenizer, characterTokenizer, tokenize } from "@trireme/dataloader";

// 10.8 million characters, as many as the State of the Union addresses have, in 233 documents.
const sentence =
  "It was a bright cold day in April, and the clocks were striking thirteen — “why?”\n";
const document = sentence.repeat(563);
const documents = Array.from({ length: 233 }, (_, i) => ({ name: String(i), text: document }));
const characters = characterTokenizer([document]);
const bytes = byteTokenizer();

export const benchmarks = [
  {
    id: "dataloader/tokenize-characters",
    what: "10.8 million characters in 233 documents to one token per character, fingerprint and all",
    unit: "s",
    better: "lower",
    target: 2,
    time: (): void => {
      tokenize(documents, characters);
    },
  },
  {
    id: "dataloader/tokenize-bytes",
    what: "10.8 million characters in 233 documents to one token per byte, fingerprint and all",
    unit: "s",
    better: "lower",
    target: 2,
    time: (): void => {
      tokenize(documents, bytes);
    },
  },
];
