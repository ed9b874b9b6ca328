import type { Identity } from "../../src/identity.ts";

/** Where the files of a release are downloaded from: `https://releases.vendor.org/v3.29.0`. `version` has the "v". */
export function manifestBase({ releaseBase }: Identity, version: string): string {
  return `${releaseBase.replace(/\/+$/, "")}/${version}`;
}
