/** A manifest as `make release` writes it, without a file: `operator.yaml`, `older/vendor.yaml`. */
import { manifestFiles } from "../../src/release/manifests/manifest-files.ts";

export function manifestText(file: string): string {
  const text = manifestFiles()[file];
  if (text === undefined) throw new Error(`there is no manifest "${file}"`);
  return text();
}
