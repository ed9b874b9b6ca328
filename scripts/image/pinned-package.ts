import type { DebianPackage } from "./packages.ts";

/**
 * From a line of `apt-get download --print-uris`: `'http://site/debian/pool/….deb' file size SHA256:digest`. The file has the
 * epoch of the version (`zlib1g_1%3a1.2.13.dfsg-1_amd64.deb`), the address has not. Pure.
 */
export function pinnedPackage(line: string): DebianPackage {
  const [, address = "", file = "", digest = ""] = /^'(\S+)' (\S+) \d+ SHA256:([0-9a-f]{64})$/.exec(line) ?? [];
  if (address === "") throw new Error(`Cannot pin a package: apt printed "${line}"`);
  const path = decodeURIComponent(new URL(address).pathname.slice(1));
  const [name = "", version = ""] = decodeURIComponent(file).split("_");
  return { name, version, path, digest };
}
