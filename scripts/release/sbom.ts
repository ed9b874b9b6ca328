/**
 * The bill of materials of a release, as SPDX 2.3: what the executables and the images are made of. Pure.
 *
 *   product   depends on the npm packages that are compiled into it, and on Bun, which the executable contains
 *   image     of an architecture: contains the product and Debian's packages
 *
 * Not listed: what Bun itself is made of, and the tools that build and test the product.
 */
import { basename } from "node:path";
import type { Identity } from "../../src/identity.ts";
import type { ImageArchitecture } from "../image/archive.ts";
import type { DebianPackage } from "../image/packages.ts";
import { manifestBase } from "./manifest-base.ts";

/** The part of package-lock.json that matters here. */
export interface LockFile {
  readonly packages: Readonly<Record<string, LockedPackage>>;
}

interface LockedPackage {
  readonly version?: string;
  readonly integrity?: string;
  readonly license?: string;
  readonly dev?: boolean;
  readonly dependencies?: Readonly<Record<string, string>>;
}

export interface SbomRequest {
  readonly names: Identity;
  /** With the "v" of a release. */
  readonly version: string;
  /** Seconds since 1970. */
  readonly time: number;
  readonly lock: LockFile;
  readonly debian: Readonly<Record<ImageArchitecture, readonly DebianPackage[]>>;
}

interface SpdxPackage {
  readonly SPDXID: string;
  readonly name: string;
  readonly versionInfo: string;
  readonly downloadLocation: string;
  readonly filesAnalyzed: false;
  readonly licenseConcluded: "NOASSERTION";
  readonly licenseDeclared: string;
  readonly copyrightText: "NOASSERTION";
  readonly checksums?: readonly { readonly algorithm: "SHA256" | "SHA512"; readonly checksumValue: string }[];
  readonly externalRefs?: readonly {
    readonly referenceCategory: "PACKAGE-MANAGER";
    readonly referenceType: "purl";
    readonly referenceLocator: string;
  }[];
}

const DOCUMENT = "SPDXRef-DOCUMENT";
const RUNTIME = /^@oven\/bun-linux-/;

export function sbomOf({ names, version, time, lock, debian }: SbomRequest): object {
  const base = manifestBase(names, version);
  const product = packageOf(names.product, version, { downloadLocation: base });
  const compiled = compiledPackages(lock).map(([name, locked]) => npmPackage(name, locked));
  const images = (["amd64", "arm64"] as const).map((architecture) => ({
    image: packageOf(`${names.product}-image-${architecture}`, version, { downloadLocation: `${base}/images` }),
    packages: debian[architecture].map((each) => debianPackage(each, architecture)),
  }));
  return {
    spdxVersion: "SPDX-2.3",
    dataLicense: "CC0-1.0",
    SPDXID: DOCUMENT,
    name: `${names.product}-${version}`,
    documentNamespace: `${base}/sbom.spdx.json`,
    creationInfo: {
      created: new Date(time * 1000).toISOString().replace(/\.\d+Z$/, "Z"),
      creators: [`Tool: ${names.product}-release`],
    },
    packages: [product, ...compiled, ...images.flatMap(({ image, packages }) => [image, ...packages])],
    relationships: [
      relation(DOCUMENT, "DESCRIBES", product.SPDXID),
      ...compiled.map((each) => relation(product.SPDXID, "DEPENDS_ON", each.SPDXID)),
      ...images.flatMap(({ image, packages }) => [
        relation(DOCUMENT, "DESCRIBES", image.SPDXID),
        relation(image.SPDXID, "CONTAINS", product.SPDXID),
        ...packages.map((each) => relation(image.SPDXID, "CONTAINS", each.SPDXID)),
      ]),
    ],
  };
}

/** The dependencies of the product and theirs, and Bun for each architecture. */
export function compiledPackages({ packages }: LockFile): readonly (readonly [string, LockedPackage])[] {
  const found = new Map<string, LockedPackage>();
  const add = (name: string) => {
    const locked = packages[`node_modules/${name}`];
    if (locked === undefined) throw new Error(`Cannot list package "${name}": the lock file does not have it`);
    if (found.has(name)) return;
    found.set(name, locked);
    for (const each of Object.keys(locked.dependencies ?? {})) add(each);
  };
  for (const name of Object.keys(packages[""]?.dependencies ?? {})) add(name);
  for (const path of Object.keys(packages)) {
    const name = path.replace("node_modules/", "");
    if (RUNTIME.test(name)) add(name);
  }
  return [...found];
}

function npmPackage(name: string, { version = "", integrity = "", license }: LockedPackage): SpdxPackage {
  const digest = /^sha512-(.+)$/.exec(integrity)?.[1];
  return packageOf(name, version, {
    ...(license === undefined ? {} : { licenseDeclared: license }),
    ...(digest === undefined
      ? {}
      : { checksums: [{ algorithm: "SHA512", checksumValue: Buffer.from(digest, "base64").toString("hex") }] }),
    externalRefs: [purl(`pkg:npm/${name.replace("@", "%40")}@${version}`)],
  });
}

/** `path` ends with `name_version_architecture.deb`, without the epoch of the version. */
function debianPackage({ name, version, path, digest }: DebianPackage, of: ImageArchitecture): SpdxPackage {
  const [, , architecture = ""] = basename(path, ".deb").split("_");
  const spdx = packageOf(name, version, {
    checksums: [{ algorithm: "SHA256", checksumValue: digest }],
    externalRefs: [purl(`pkg:deb/debian/${name}@${encodeURIComponent(version)}?arch=${architecture}`)],
  });
  return { ...spdx, SPDXID: `${spdx.SPDXID}-${of}` };
}

function packageOf(name: string, version: string, more: Partial<SpdxPackage>): SpdxPackage {
  return {
    SPDXID: `SPDXRef-${`${name}-${version}`.replaceAll(/[^A-Za-z0-9.-]+/g, "-")}`,
    name,
    versionInfo: version,
    downloadLocation: "NOASSERTION",
    filesAnalyzed: false,
    licenseConcluded: "NOASSERTION",
    licenseDeclared: "NOASSERTION",
    copyrightText: "NOASSERTION",
    ...more,
  };
}

function purl(referenceLocator: string) {
  return { referenceCategory: "PACKAGE-MANAGER", referenceType: "purl", referenceLocator } as const;
}

function relation(from: string, relationshipType: string, to: string): object {
  return { spdxElementId: from, relationshipType, relatedSpdxElement: to };
}
