/**
 * `make deb`: the Debian package of the build, for this host's architecture.
 *   bun --preload ./scripts/use-identity.ts scripts/deb.ts --out dist
 */
import { join } from "node:path";
import { parseArgs } from "node:util";
import { version } from "../package.json";
import { identity } from "../src/identity.ts";
import { buildPackage } from "./deb/build-package.ts";
import { Refused } from "./install/install.ts";
import { installPrograms } from "./programs/install.ts";
import { sourceTime } from "./source-time.ts";

const { values } = parseArgs({
  options: {
    out: { type: "string", default: "dist" },
    maintainer: { type: "string", default: "" },
  },
});

await installPrograms(["dpkg-deb", "tar"]);
try {
  const file = await buildPackage({
    names: identity,
    version,
    architecture: process.arch === "x64" ? "amd64" : process.arch,
    maintainer: values.maintainer || identity.maintainer,
    executable: join(values.out, "bin", identity.product),
    folder: values.out,
    time: await sourceTime(),
  });
  console.log(`built ${file}`);
} catch (failure) {
  if (!(failure instanceof Refused)) throw failure;
  console.error(`make: ${failure.message}`);
  process.exit(1);
}
