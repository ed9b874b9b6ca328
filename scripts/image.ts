/**
 * `make image`: the OCI images of the executables of `make dist`, for x64 and arm64.
 *   bun scripts/image.ts --identity identity/vendor.json --out dist
 */
import { statSync } from "node:fs";
import { join, resolve } from "node:path";
import { parseArgs } from "node:util";
import defaultNames from "../identity/vendor.json";
import { VERSION } from "../src/version.ts";
import { readIdentity } from "./identity.ts";
import { buildImage, IMAGE_TARGETS, imageArchive, imageName } from "./image/build-image.ts";
import { Refused } from "./install/install.ts";
import { installPrograms } from "./programs/install.ts";
import { sourceTime } from "./source-time.ts";

const { values } = parseArgs({
  options: {
    identity: { type: "string", default: "identity/vendor.json" },
    out: { type: "string", default: "dist" },
  },
});

const SMALL = 9;

const names = await readIdentity(resolve(values.identity), defaultNames);
await installPrograms(["dpkg-deb", "tar"]);
try {
  const time = await sourceTime();
  for (const [target, architecture] of IMAGE_TARGETS) {
    const executable = join(values.out, `linux-${target}`, "bin", names.product);
    const archive = imageArchive(values.out, target);
    await buildImage({
      names,
      version: VERSION,
      architecture,
      executable,
      time,
      compressionLevel: SMALL,
      archive,
    });
    const megabytes = (statSync(archive).size / 1e6).toFixed(1);
    console.log(`built ${archive}: ${imageName(names, VERSION)}, linux/${architecture}, ${megabytes} MB`);
  }
} catch (failure) {
  if (!(failure instanceof Refused)) throw failure;
  console.error(`make: ${failure.message}`);
  process.exit(1);
}
