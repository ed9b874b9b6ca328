import { readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";

export const CHECKSUMS = "SHA256SUMS";

/** Of every file below the directory, as `sha256sum --check` reads them. */
export function writeChecksums(directory: string): void {
  const files = readdirSync(directory, { recursive: true, encoding: "utf8" })
    .filter((name) => name !== CHECKSUMS && statSync(join(directory, name)).isFile())
    .sort();
  const digestOf = (name: string) =>
    new Bun.CryptoHasher("sha256").update(readFileSync(join(directory, name))).digest("hex");
  writeFileSync(join(directory, CHECKSUMS), files.map((name) => `${digestOf(name)}  ${name}\n`).join(""));
}
