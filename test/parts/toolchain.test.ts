/** Which toolchain is asked for, and, with a module proxy in a directory, that only the pinned contents are used, once and whole. */
import { afterAll, describe, expect, test } from "bun:test";
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { program, testNeeding } from "../support/needs.ts";
import { temporaryDirectory } from "../support/temporary-directory.ts";
import { isNewEnough } from "./go-version.ts";
import { TOOLCHAIN } from "./table.ts";
import { fetchToolchain, reasonIn, toolchainArchitecture, toolchainRequest } from "./toolchain.ts";

const folder = temporaryDirectory("toolchain");
afterAll(() => folder.remove());

describe("TOOLCHAIN", () => {
  test("builds every module of this directory", () => {
    const modules = [...new Bun.Glob("*/go.mod").scanSync(import.meta.dir)];

    expect(modules).not.toEqual([]);
    const tooNew = modules.filter(
      (module) => !isNewEnough(`go${TOOLCHAIN.version}`, readFileSync(join(import.meta.dir, module), "utf8")),
    );
    expect(tooNew).toEqual([]);
  });
});

describe("toolchainRequest()", () => {
  test("asks for one release of one architecture, with the hashes that it must have", () => {
    const toolchain = { version: "1.30.2", sums: { amd64: "h1:a=", arm64: "h1:b=" }, goModSum: "h1:c=" };

    expect(toolchainRequest(toolchain, "arm64")).toEqual({
      "go.mod":
        "module parts.invalid/toolchain\n\ngo 1.17\n\nrequire golang.org/toolchain v0.0.1-go1.30.2.linux-arm64\n",
      "go.sum":
        "golang.org/toolchain v0.0.1-go1.30.2.linux-arm64 h1:b=\n" +
        "golang.org/toolchain v0.0.1-go1.30.2.linux-arm64/go.mod h1:c=\n",
    });
  });
});

describe("reasonIn()", () => {
  test("returns both hashes of contents that are not the pinned ones", () => {
    const complaints =
      "go: downloading\nverifying m@v1: checksum mismatch\n\tdownloaded: h1:a\n\tgo.sum: h1:b\n\nmore\n";

    expect(reasonIn(complaints)).toBe("verifying m@v1: checksum mismatch; downloaded: h1:a; go.sum: h1:b");
  });

  test("returns the end of other complaints", () => {
    expect(reasonIn("a\nb\nc\n\nd\n")).toBe("b; c; d");
  });
});

describe("fetchToolchain()", () => {
  const EXAMPLE = { version: "1.30.2", goModSum: TOOLCHAIN.goModSum };
  const needs = [
    program("go"),
    program("python3"),
    toolchainArchitecture() === undefined ? "needs x64 or arm64" : undefined,
  ];

  const directoryName = `go-${EXAMPLE.version}-${toolchainArchitecture()}`;

  /** A module proxy in a directory: Go reads it as it reads one on the network. */
  function proxyWith(go: string): string {
    const place = join(folder.path, `proxy-${Bun.hash(go)}`);
    const versions = join(place, "golang.org/toolchain/@v");
    mkdirSync(versions, { recursive: true });
    const version = `v0.0.1-go${EXAMPLE.version}.linux-${toolchainArchitecture()}`;
    writeFileSync(join(versions, `${version}.info`), JSON.stringify({ Version: version }));
    writeFileSync(join(versions, `${version}.mod`), "module golang.org/toolchain\n");
    const zip = `
import sys, zipfile
path, prefix, go = sys.argv[1:]
with zipfile.ZipFile(path, "w") as archive:
    for name, text in {"bin/go": go, "pkg/tool/linux/compile": "", "src/_go.mod": "module std\\n"}.items():
        archive.writestr(prefix + "/" + name, text)
`;
    const prefix = `golang.org/toolchain@${version}`;
    const made = Bun.spawnSync(["python3", "-c", zip, join(versions, `${version}.zip`), prefix, go]);
    expect(made.stderr.toString()).toBe("");
    return `file://${place}`;
  }

  async function withProxy<T>(proxy: string, work: () => Promise<T>): Promise<T> {
    const before = process.env["GOPROXY"];
    process.env["GOPROXY"] = proxy;
    try {
      return await work();
    } finally {
      if (before === undefined) delete process.env["GOPROXY"];
      else process.env["GOPROXY"] = before;
    }
  }

  /** The hash that Go finds in what the proxy has. */
  async function sumOf(proxy: string): Promise<string> {
    const wrong = { ...EXAMPLE, sums: { amd64: `h1:${"A".repeat(43)}=`, arm64: `h1:${"A".repeat(43)}=` } };
    const cache = join(folder.path, "wrong");
    mkdirSync(cache, { recursive: true });
    const problem = await withProxy(proxy, () => fetchToolchain(cache, wrong));
    expect(problem).toMatch(
      /^Cannot fetch Go 1\.30\.2: verifying .*: checksum mismatch; downloaded: h1:\S+; go\.sum: /,
    );
    expect(existsSync(join(cache, directoryName))).toBe(false);
    return /downloaded: +(h1:\S+);/.exec(problem ?? "")?.[1] ?? "";
  }

  testNeeding(...needs)(
    "refuses other contents than the pinned, and fetches the pinned once for runs at the same time",
    async () => {
      const proxy = proxyWith("#!/bin/sh\necho fetched\n");
      const sum = await sumOf(proxy);
      const cache = join(folder.path, "right");
      mkdirSync(cache);
      const toolchain = { ...EXAMPLE, sums: { amd64: sum, arm64: sum } };

      const problems = await withProxy(proxy, () =>
        Promise.all([fetchToolchain(cache, toolchain), fetchToolchain(cache, toolchain)]),
      );

      expect(problems).toEqual([undefined, undefined]);
      const directory = join(cache, directoryName);
      expect(Bun.spawnSync([join(directory, "bin/go")]).stdout.toString()).toBe("fetched\n");
      expect(existsSync(join(directory, "src/go.mod"))).toBe(true);
      expect(readdirSync(cache).toSorted()).toEqual([directoryName, `${directoryName}.lock`]);
      // It is there: no proxy is asked again.
      expect(await withProxy("off", () => fetchToolchain(cache, toolchain))).toBeUndefined();
    },
  );

  testNeeding(...needs)("says what Go says if there is no module proxy", async () => {
    const cache = join(folder.path, "off");
    mkdirSync(cache);

    const problem = await withProxy("off", () => fetchToolchain(cache, TOOLCHAIN));

    expect(problem).toMatch(/^Cannot fetch Go .*GOPROXY=off/);
  });
});
