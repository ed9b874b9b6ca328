import { basename } from "node:path";
import type { DebianPackage } from "./packages.ts";

/** From a line of `apt-get download --print-uris`: `'http://site/debian/pool/….deb' file size SHA256:digest`. Pure. */
export function pinnedPackage(line: string): DebianPackage {
  const [, address = "", digest = ""] = /^'(\S+)' \S+ \d+ SHA256:([0-9a-f]{64})$/.exec(line) ?? [];
  if (address === "") throw new Error(`Cannot pin a package: apt printed "${line}"`);
  const path = decodeURIComponent(new URL(address).pathname.slice(1));
  const [name = ""] = basename(path).split("_");
  return { name, path, digest };
}
