import { everyRequestFails } from "../s3-faults.ts";

// Two parts, so that there is something to be left half up.
everyRequestFails(6 * 2 ** 20, ["fails before", "fails after", "dies before", "dies after"]);
