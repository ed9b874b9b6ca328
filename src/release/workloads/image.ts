import { identity } from "../../identity.ts";
import type { ImageSource } from "../installation/effective-installation.ts";

/** `registry.example.org/mirror/vendor:v1.2.3`: the one image of all components. */
export function imageName({ registry, path, prefix }: ImageSource, version: string): string {
  return `${registry}${path === "" ? "" : `${path}/`}${prefix}${identity.product}:${version}`;
}
