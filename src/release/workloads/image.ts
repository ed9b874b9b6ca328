import { identity } from "../../identity.ts";
import type { ImageSource } from "../installation/effective-installation.ts";

/** Without an Installation that says otherwise, as manifests, chart and admin tool name it. */
export function defaultImage(version: string): string {
  return imageName({ registry: identity.imageRegistry, path: "", prefix: "", pullSecrets: [] }, version);
}

/** `registry.example.org/mirror/vendor:v1.2.3`: the one image of all components. */
export function imageName({ registry, path, prefix }: ImageSource, version: string): string {
  return `${registry}${path === "" ? "" : `${path}/`}${prefix}${identity.product}:${version}`;
}
