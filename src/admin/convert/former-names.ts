/** Names of v1 resources -> names of v3 resources, which must be subdomains of DNS. Pure. */
import { createHash } from "node:crypto";
import { type Address, addressBytes } from "../../ip/address.ts";

/** Lower case; a slash becomes a dot, any other character that is not allowed a dash; without dots and dashes at the ends. */
export function normalName(name: string): string {
  return name
    .toLowerCase()
    .replaceAll("/", ".")
    .replace(/[^-.a-z0-9]+/g, "-")
    .replace(/[.-]*\.[.-]*/g, ".")
    .replace(/^[.-]+|[.-]+$/g, "");
}

/** With a hash of the original, so that two names do not become one; a name that is allowed stays as it is. */
export function qualifiedName(name: string): string {
  return withHash(name, normalName(name));
}

export function nameWithoutDots(name: string): string {
  return withHash(name, normalName(name).replaceAll(".", "-"));
}

const HASH_LENGTH = 8;

function withHash(original: string, name: string): string {
  if (original === name) return name;
  return `${name}-${createHash("sha1").update(original).digest("hex").slice(0, HASH_LENGTH)}`;
}

/** `10.0.0.0/16` -> `10-0-0-0-16` */
export function nameOfCidr(cidr: string): string {
  return cidr.replace(/[.:/]/g, "-");
}

/** `10.0.0.1` -> `10-0-0-1`, `fd00::1` -> `fd00-0000-…-0001` */
export function nameOfAddress(address: Address): string {
  const bytes = addressBytes(address);
  if (address.family === 4) return [...bytes].join("-");
  return (Buffer.from(bytes).toString("hex").match(/.{4}/g) ?? []).join("-");
}

/** The profile of a namespace has another prefix in v3. */
export function profileName(name: string): string {
  return name.startsWith("k8s_ns.") ? `kns.${name.slice("k8s_ns.".length)}` : qualifiedName(name);
}
