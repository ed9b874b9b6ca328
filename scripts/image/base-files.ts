/** Which files of Debian's packages are in the image, and where. Pure. */
import { dirname, join, relative } from "node:path";
import type { ImageArchitecture } from "./archive.ts";

/** `x86_64-linux-gnu`, `aarch64-linux-gnu`. */
const LIBRARY = /^usr\/lib\/[^/]+-linux-gnu\/[^/]+\.so(\.[^/]+)?$/;
/** Programs have the path of the dynamic loader compiled in. */
const LOADER = /^usr\/lib(64)?\/ld-linux-[^/]+$/;
const KEPT = [
  LIBRARY,
  LOADER,
  /^usr\/sbin\/bird(cl)?$/,
  /^usr\/lib\/os-release$/,
  /^usr\/share\/doc\/[^/]+\/copyright$/,
  /^usr\/share\/common-licenses\/[^/]+$/,
];

/** The path in the image of a file of a package; `undefined` if it is left out. In the image everything is below /usr. */
export function pathInImage(path: string): string | undefined {
  const merged = mergedPath(path);
  return KEPT.some((pattern) => pattern.test(merged)) ? merged : undefined;
}

/** The target of a link of a package that is at `path` in the image: always relative, as those of `LINKS`. */
export function linkInImage(path: string, target: string): string {
  return target.startsWith("/") ? relative(dirname(join("/", path)), join("/", mergedPath(target.slice(1)))) : target;
}

function mergedPath(path: string): string {
  return path.replace(/^(bin|sbin|lib|lib64)\//, "usr/$1/");
}

/** Links at the old places of what is below /usr. Relative, so that they also work if seen from another root. */
export const LINKS: Readonly<Record<string, string>> = {
  bin: "usr/bin",
  sbin: "usr/sbin",
  lib: "usr/lib",
  lib64: "usr/lib64",
  "etc/os-release": "../usr/lib/os-release",
};

/**
 * The loader under the name of BIRD. An agent that has entered the host starts BIRD with it (src/agent/bgp/bird-command.ts):
 * the libraries are beside the loader, and the kernel names a process after the file that was executed.
 */
export const LOADER_LINKS: Readonly<Record<ImageArchitecture, Readonly<Record<string, string>>>> = {
  amd64: { "usr/libexec/bird": "../lib/x86_64-linux-gnu/ld-linux-x86-64.so.2" },
  arm64: { "usr/libexec/bird": "../lib/aarch64-linux-gnu/ld-linux-aarch64.so.1" },
};

/** Parents first. */
export const DIRECTORIES: readonly string[] = [
  "etc",
  "etc/ssl",
  "etc/ssl/certs",
  "root",
  "run",
  "usr",
  "usr/bin",
  "usr/lib",
  "usr/lib64",
  "usr/libexec",
  "usr/sbin",
  "var",
  "var/lib",
  "var/lib/dpkg",
  "var/lib/dpkg/status.d",
];

export const TEXTS: Readonly<Record<string, string>> = {
  "etc/passwd": "root:x:0:0:root:/root:/usr/sbin/nologin\nnobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\n",
  "etc/group": "root:x:0:\nnogroup:x:65534:\n",
  "etc/nsswitch.conf": "hosts: files dns\n",
};

/** Authorities of the package `ca-certificates`, which Debian's own tool would put into the file below. */
export const AUTHORITIES = "usr/share/ca-certificates/mozilla";
export const AUTHORITIES_FILE = "etc/ssl/certs/ca-certificates.crt";
