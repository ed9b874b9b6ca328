import { writeSync } from "node:fs";
import { identity } from "../identity.ts";
import { VERSION } from "../version.ts";

export async function run(): Promise<number> {
  writeSync(1, `${identity.product} ${VERSION}\n`);
  return 0;
}
