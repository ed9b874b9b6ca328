/** What `make release` writes, without executables, packages and images, which have tests of their own. */
import { afterAll, describe, expect, test } from "bun:test";
import { existsSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join, relative } from "node:path";
import lock from "../../package-lock.json";
import { IMAGE_PACKAGES } from "../../scripts/image/packages.ts";
import { CHECKSUMS, writeChecksums } from "../../scripts/release/checksums.ts";
import { manifestBase } from "../../scripts/release/manifest-base.ts";
import { setModes, writeReleaseFiles } from "../../scripts/release/manifests-and-chart.ts";
import { sbomOf } from "../../scripts/release/sbom.ts";
import { uncommittedFiles } from "../../scripts/source-time.ts";
import { identity } from "../../src/identity.ts";
import { manifestFiles } from "../../src/release/manifests/manifest-files.ts";
import { VERSION } from "../../src/version.ts";
import { helmProblem, makeHelm } from "../support/helm.ts";
import { program, testNeeding } from "../support/needs.ts";
import { proofSize } from "../support/proof-size.ts";
import { temporaryDirectory } from "../support/temporary-directory.ts";

const TIME = 1_700_000_000;
const { adminTool, operator, product } = identity;

const folder = temporaryDirectory("release-test");
afterAll(() => folder.remove());

async function write(name: string): Promise<string> {
  const directory = join(folder.path, name);
  await writeReleaseFiles(directory, TIME);
  writeChecksums(directory);
  return readFileSync(join(directory, CHECKSUMS), "utf8");
}

describe("the files of a release", () => {
  testNeeding(program("tar"))("are the same to the byte if they are written again, with another umask", async () => {
    const first = await write("first");
    const mask = process.umask(0o077);
    const second = await write("second").finally(() => process.umask(mask));

    expect(second).toBe(first);
    expect(first.split("\n")).toContainEqual(expect.stringMatching(/^[0-9a-f]{64} {2}operator-crds\.yaml$/));
  });

  test("can be read by everybody, whatever the umask is", () => {
    const directory = join(folder.path, "modes");
    const mask = process.umask(0o077);
    try {
      mkdirSync(join(directory, "bin"), { recursive: true });
      writeFileSync(join(directory, "a.yaml"), "");
      writeFileSync(join(directory, "bin", adminTool), "", { mode: 0o755 });
    } finally {
      process.umask(mask);
    }
    setModes(directory);

    const modes = [".", "a.yaml", "bin", `bin/${adminTool}`].map(
      (name) => statSync(join(directory, name)).mode & 0o777,
    );
    expect(modes).toEqual([0o755, 0o644, 0o755, 0o755]);
  });

  testNeeding(program("tar"))("are those that the procedure of an upgrade names", async () => {
    const named = readFileSync("docs/upgrade.md", "utf8").matchAll(/\$MANIFEST_BASE\/([^"\s]+)/g);
    await write("named");
    const written = readdirSync(join(folder.path, "named"), { recursive: true, encoding: "utf8" });

    const names = [...named].map(([, name = ""]) => name).filter((name) => !name.startsWith("bin/"));
    expect(names.length).toBeGreaterThan(5);
    expect(written).toEqual(expect.arrayContaining(names));
  });

  testNeeding(program("tar"), helmProblem("helm3"))("have the chart as Helm packs and finds it", async () => {
    await write("chart");
    const helm = makeHelm("helm3", folder.path);
    const directory = join(folder.path, "chart");
    const [archive = ""] = readdirSync(directory).filter((name) => name.endsWith(".tgz"));

    expect(await helm("show", "chart", join(directory, archive))).toContain(`name: ${operator}\n`);
    await helm("lint", join(directory, archive));
    const before = readFileSync(join(directory, "index.yaml"), "utf8");
    const [own, theirs] = [before, await indexOfHelm(helm, directory)].map((text) => Bun.YAML.parse(text) as Index);
    const essence = (index: Index | undefined) =>
      index?.entries[operator]?.map(({ name, version, digest, urls }) => ({ name, version, digest, urls }));
    expect(essence(own)).toEqual(essence(theirs));
  });
});

describe("make release", () => {
  const out = join(folder.path, "quick");

  test("writes the manifests alone, and nothing that was there before stays", () => {
    const directory = join(out, "manifests");
    mkdirSync(directory, { recursive: true });
    writeFileSync(join(directory, "former.yaml"), "");
    succeed(["make", "release", `OUT=${out}`]);

    const texts = Object.fromEntries(
      readdirSync(directory, { recursive: true, withFileTypes: true }).flatMap((each) => {
        const path = join(each.parentPath, each.name);
        return each.isFile() ? [[relative(directory, path), readFileSync(path, "utf8")]] : [];
      }),
    );
    expect(texts).toEqual(Object.fromEntries(Object.entries(manifestFiles()).map(([name, text]) => [name, text()])));
    expect(readdirSync(out)).toEqual(["manifests"]);
  });

  test("heeds ARTIFACTS only as typed: systems of continuous integration have such a variable", () => {
    const { exitCode, stdout } = Bun.spawnSync(["make", "release", `OUT=${out}`], {
      env: { ...process.env, ARTIFACTS: "/ci/artifacts" },
    });
    expect([exitCode, stdout.toString()]).toEqual([0, expect.stringContaining("written with ARTIFACTS=all")]);
  });

  test("refuses an unknown value of ARTIFACTS", () => {
    const { exitCode, stderr } = Bun.spawnSync(["make", "release", "ARTIFACTS=some", `OUT=${out}`]);
    expect([exitCode, stderr.toString()]).toEqual([2, expect.stringContaining('ARTIFACTS="some"')]);
  });

  test("writes what the pages name, or it is in the repository", () => {
    const pages = ["README.md", ...new Bun.Glob("docs/**/*.md").scanSync(".")];
    const named = pages.flatMap((page) =>
      [...readFileSync(page, "utf8").matchAll(/(?<![\w/])(deploy|dist\/manifests)\/([\w./*-]*[\w*])/g)].map(
        ([path, directory = "", name = ""]) => ({ page, path, directory, name }),
      ),
    );
    const manifests = Object.keys(manifestFiles());
    const missing = named.filter(({ path, directory, name }) =>
      directory === "deploy"
        ? !existsSync(path) && [...new Bun.Glob(path).scanSync(".")].length === 0
        : !manifests.includes(name) && name !== "older",
    );

    expect(named.length).toBeGreaterThan(50);
    expect(missing).toEqual([]);
  });
});

testNeeding(
  program("tar"),
  program("dpkg-deb"),
  program("sha256sum"),
  proofSize({ everyDay: "only in `make soak`", soak: undefined }),
)(
  "make release ARTIFACTS=all builds tools, packages and images for both architectures, and its checksums hold",
  () => {
    const out = join(folder.path, "out");
    // The time is given: the work tree may have uncommitted files.
    succeed(["env", `SOURCE_DATE_EPOCH=${TIME}`, "make", "release", "ARTIFACTS=all", `OUT=${out}`]);
    const directory = join(out, "release", VERSION);

    succeed(["sha256sum", "--check", "--strict", "--quiet", CHECKSUMS], directory);
    const names = readFileSync(join(directory, CHECKSUMS), "utf8");
    for (const architecture of ["amd64", "arm64"]) {
      expect(names).toContain(`  bin/linux-${architecture}/${adminTool}\n`);
      expect(names).toContain(`  images/${product}-${VERSION}-linux-${architecture}.tar\n`);
      expect(names).toMatch(new RegExp(`  packages/\\S+_${architecture}\\.deb\n`));
    }
    expect(names).toContain("  sbom.spdx.json\n");
    expect(readdirSync(join(out, "release"))).toEqual([VERSION]);
  },
  1_200_000,
);

function succeed(command: readonly string[], cwd = "."): void {
  const { exitCode, stderr } = Bun.spawnSync([...command], { cwd });
  expect(exitCode, stderr.toString()).toBe(0);
}

interface Index {
  readonly entries: Readonly<Record<string, readonly Readonly<Record<string, unknown>>[]>>;
}

/** Helm's own index of the directory. */
async function indexOfHelm(helm: ReturnType<typeof makeHelm>, directory: string): Promise<string> {
  await helm("repo", "index", directory);
  return readFileSync(join(directory, "index.yaml"), "utf8");
}

testNeeding(program("git"))(
  "uncommittedFiles() are those that the commit lacks, unless the time is given",
  async () => {
    const directory = join(folder.path, "repository");
    mkdirSync(directory);
    const git = (...args: readonly string[]) => succeed(["git", "-C", directory, ...args]);
    git("init", "--quiet");
    writeFileSync(join(directory, "kept"), "one");
    git("add", "kept");
    git("-c", "user.name=a", "-c", "user.email=a@example.org", "commit", "--quiet", "--message=one");
    const given = process.env["SOURCE_DATE_EPOCH"];
    try {
      delete process.env["SOURCE_DATE_EPOCH"];
      expect(await uncommittedFiles(directory)).toEqual([]);
      writeFileSync(join(directory, "kept"), "two");
      writeFileSync(join(directory, "new"), "");
      expect(await uncommittedFiles(directory)).toEqual(["M kept", "?? new"]);
      process.env["SOURCE_DATE_EPOCH"] = String(TIME);
      expect(await uncommittedFiles(directory)).toEqual([]);
    } finally {
      if (given === undefined) delete process.env["SOURCE_DATE_EPOCH"];
      else process.env["SOURCE_DATE_EPOCH"] = given;
    }
  },
);

test("the address of a release has its version", () => {
  expect(manifestBase({ ...identity, releaseBase: "https://a.example/b/" }, "v1.2.3")).toBe(
    "https://a.example/b/v1.2.3",
  );
});

describe("sbomOf()", () => {
  const sbom = sbomOf({ names: identity, version: "v1.2.3", time: TIME, lock, debian: IMAGE_PACKAGES }) as Spdx;
  const named = (name: string) => sbom.packages.filter((each) => each.name === name);

  test("lists what is compiled into the executable, with the hashes of the lock file, and no tool", () => {
    for (const name of Object.keys(lock.packages[""].dependencies)) {
      const checksums = [{ algorithm: "SHA512", checksumValue: expect.stringMatching(/^[0-9a-f]{128}$/) }];
      const locked = Object.entries(lock.packages).find(([path]) => path === `node_modules/${name}`)?.[1];
      expect(named(name)).toMatchObject([
        { versionInfo: locked?.version, licenseDeclared: locked?.license, checksums },
      ]);
    }
    expect(named("@oven/bun-linux-x64")).toHaveLength(1);
    expect(named("typescript")).toEqual([]);
  });

  test("lists Debian's packages of each image, by their hashes", () => {
    const bird = named("bird2").map(({ checksums }) => checksums?.[0]?.checksumValue);
    const pinned = Object.values(IMAGE_PACKAGES).map((each) => each.find(({ name }) => name === "bird2")?.digest);
    expect(bird).toEqual(pinned);
  });

  test("names the version of a Debian package with its epoch", () => {
    const [zlib] = named("zlib1g");
    expect(zlib?.versionInfo).toStartWith("1:1.2.13");
    expect(zlib?.externalRefs?.[0]?.referenceLocator).toStartWith("pkg:deb/debian/zlib1g@1%3A1.2.13");
  });

  test("is not made if the lock file lacks a dependency", () => {
    const { "node_modules/valibot": _, ...packages } = lock.packages;
    const request = { names: identity, version: "v1.2.3", time: TIME, lock: { packages }, debian: IMAGE_PACKAGES };
    expect(() => sbomOf(request)).toThrow('"valibot"');
  });

  test("relates only what it lists, and everything that it lists", () => {
    const ids = sbom.packages.map(({ SPDXID }) => SPDXID);
    const related = sbom.relationships.map((each) => each.relatedSpdxElement);

    expect(new Set(ids).size).toBe(ids.length);
    expect(ids.filter((id) => !/^SPDXRef-[A-Za-z0-9.-]+$/.test(id))).toEqual([]);
    expect(new Set(related)).toEqual(new Set(ids));
    expect(named(product)[0]?.downloadLocation).toBe(manifestBase(identity, "v1.2.3"));
  });
});

interface Spdx {
  readonly packages: readonly {
    readonly SPDXID: string;
    readonly name: string;
    readonly versionInfo: string;
    readonly downloadLocation: string;
    readonly externalRefs?: readonly { readonly referenceLocator: string }[];
    readonly checksums?: readonly { readonly checksumValue: string }[];
  }[];
  readonly relationships: readonly { readonly relatedSpdxElement: string }[];
}
