import { everyRequestFails } from "../s3-faults.ts";

// Three parts, so that there is something to be left half up.
everyRequestFails(11 * 2 ** 20, ["fails before", "fails after", "dies before", "dies after"]);
