/**
 * `make deb`: the Debian package of the build, for this host's architecture.
 *   bun scripts/deb.ts --identity identity/vendor.json --out dist
 */
import { join, resolve } from "node:path";
import { parseArgs } from "node:util";
import defaultNames from "../identity/vendor.json";
import { version } from "../package.json";
import { buildPackage } from "./deb/build-package.ts";
import { readIdentity } from "./identity.ts";
import { Refused } from "./install/install.ts";
import { installPrograms } from "./programs/install.ts";
import { TARGETS } from "./programs/targets.ts";
import { sourceTime } from "./source-time.ts";

const { values } = parseArgs({
  options: {
    identity: { type: "string", default: "identity/vendor.json" },
    out: { type: "string", default: "dist" },
    maintainer: { type: "string", default: "" },
  },
});

const names = await readIdentity(resolve(values.identity), defaultNames);
await installPrograms(TARGETS["make deb"].programs);
try {
  const file = await buildPackage({
    names,
    version,
    architecture: process.arch === "x64" ? "amd64" : process.arch,
    maintainer: values.maintainer || `${names.title} builders <root@localhost>`,
    executable: join(values.out, "bin", names.product),
    folder: values.out,
    time: await sourceTime(),
  });
  console.log(`built ${file}`);
} catch (failure) {
  if (!(failure instanceof Refused)) throw failure;
  console.error(`make: ${failure.message}`);
  process.exit(1);
}
