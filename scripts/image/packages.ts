/**
 * The Debian packages that the image is made of, in `packages.json`. A package is identified by its hash; the paths are those
 * in Debian's archives. `bun scripts/image-packages.ts` replaces them with the newest versions of the release.
 */
import type { ImageArchitecture } from "./archive.ts";
import { packages, time } from "./packages.json";

export interface DebianPackage {
  readonly name: string;
  /** With its epoch, which the name of the file lacks: `1:1.2.13.dfsg-1`. */
  readonly version: string;
  /** Archive and path there. */
  readonly path: string;
  /** Of the file, SHA-256. */
  readonly digest: string;
}

/** Debian 12: its BIRD is the one that the tests use. */
export const RELEASE = "bookworm";

export const PACKAGE_NAMES: readonly string[] = [
  "base-files",
  "ca-certificates",
  "libc6",
  "bird2",
  // Needed by BIRD, directly or by each other.
  "libssh-gcrypt-4",
  "libgcrypt20",
  "libgpg-error0",
  "zlib1g",
  "libgssapi-krb5-2",
  "libkrb5-3",
  "libk5crypto3",
  "libkrb5support0",
  "libcom-err2",
  "libkeyutils1",
];

export const IMAGE_PACKAGES: Readonly<Record<ImageArchitecture, readonly DebianPackage[]>> = packages;

/** The day on which the versions were the newest. */
export const PACKAGES_DAY: string = time;

/** Seconds since 1970: the time of their files in the image. */
export const PACKAGES_TIME = Date.parse(PACKAGES_DAY) / 1000;
