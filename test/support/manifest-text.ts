/** A manifest as `make release` writes it, without a file: `operator.yaml`, `older/vendor.yaml`. */
import { identity } from "../../src/identity.ts";
import { manifestFiles } from "../../src/release/manifests/manifest-files.ts";
import { VERSION } from "../../src/version.ts";

export function manifestText(file: string): string {
  const text = manifestFiles()[file];
  if (text === undefined) throw new Error(`there is no manifest "${file}"`);
  return text();
}

/** The same objects with the image of another release. `version`: without the "v". */
export function manifestTextOf(version: string, file: string): string {
  return manifestText(file).replaceAll(`/${identity.product}:${VERSION}`, `/${identity.product}:v${version}`);
}
