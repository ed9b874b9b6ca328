/**
 * Pins the newest versions of the Debian packages of the image, in scripts/image/packages.json:
 *   bun scripts/image-packages.ts
 * apt reads the lists of the release for both architectures into a temporary directory, and verifies their signatures.
 */
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { temporaryDirectory } from "../test/support/temporary-directory.ts";
import { PUBLIC_SITE } from "./image/download.ts";
import { PACKAGE_NAMES, RELEASE } from "./image/packages.ts";
import { pinnedPackage } from "./image/pinned-package.ts";
import { run } from "./run.ts";

const KEYS = "/usr/share/keyrings/debian-archive-keyring.gpg";
const SOURCES = `deb [signed-by=${KEYS}] ${PUBLIC_SITE}/debian ${RELEASE} main
deb [signed-by=${KEYS}] ${PUBLIC_SITE}/debian-security ${RELEASE}-security main
`;

const directory = temporaryDirectory("packages");
const packages = { amd64: await newestFor("amd64"), arm64: await newestFor("arm64") };
const time = new Date().toISOString().slice(0, "2000-01-01".length);
writeFileSync(join(import.meta.dir, "image/packages.json"), `${JSON.stringify({ time, packages }, undefined, 2)}\n`);
directory.remove();

async function newestFor(architecture: "amd64" | "arm64") {
  const at = (name: string) => join(directory.path, architecture, name);
  mkdirSync(at("lists/partial"), { recursive: true });
  mkdirSync(at("cache"));
  writeFileSync(at("sources.list"), SOURCES);
  const settings = {
    "Dir::Etc::SourceList": at("sources.list"),
    "Dir::Etc::SourceParts": "/dev/null",
    "Dir::State::Lists": at("lists"),
    "Dir::State::status": "/dev/null",
    "Dir::Cache": at("cache"),
    "APT::Architecture": architecture,
    "APT::Architectures": architecture,
    "APT::Sandbox::User": "root",
  };
  const options = Object.entries(settings).flatMap((setting) => ["-o", setting.join("=")]);
  await must(["apt-get", ...options, "-qq", "update"]);
  const printed = await must(["apt-get", ...options, "download", "--print-uris", ...PACKAGE_NAMES]);
  const found = new Map(printed.split("\n").map((line) => [pinnedPackage(line).name, pinnedPackage(line)]));
  return PACKAGE_NAMES.map((name) => found.get(name));
}

async function must(command: readonly string[]): Promise<string> {
  const { code, output } = await run(command);
  if (code !== 0) throw new Error(`${command.join(" ")}: ${output}`);
  return output;
}
