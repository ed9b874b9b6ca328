/** Removes what the process with the ID of its argument leaves, when that has ended. */
import { existsSync } from "node:fs";
import { pollUntil } from "../../../test/support/poll.ts";
import { removeLeftovers } from "../../cluster/leftovers.ts";

await pollUntil(() => !existsSync(`/proc/${process.argv[2]}`), "the end of the demo");
await removeLeftovers();
