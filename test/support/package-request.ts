/** The Debian package of the built executable, for tests. */
import type { PackageRequest } from "../../scripts/deb/build-package.ts";
import { identity } from "../../src/identity.ts";
import { builtProgram } from "./run-plugin.ts";

/** `folder`: where the package is put. */
export function packageRequest(folder: string): PackageRequest {
  return {
    names: identity,
    version: "1.2.3",
    architecture: process.arch === "x64" ? "amd64" : process.arch,
    maintainer: "Test <test@example.org>",
    executable: builtProgram(identity.product),
    folder,
    time: 1_700_000_000,
  };
}
