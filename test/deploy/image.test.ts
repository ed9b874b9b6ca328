/** The image: that it is reproducible, what it contains, and that both engines load it and run its programs. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { chmodSync, copyFileSync, existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { compileExecutable } from "../../scripts/compile.ts";
import { OWN_ARCHITECTURE } from "../../scripts/image/archive.ts";
import { buildImage, type ImageRequest, imageName } from "../../scripts/image/build-image.ts";
import { birdCommand } from "../../src/agent/bgp/bird-command.ts";
import { programNames } from "../../src/bin/programs.ts";
import { identity } from "../../src/identity.ts";
import { pathWithinRoot } from "../../src/linux/path-within-root.ts";
import { VERSION } from "../../src/version.ts";
import { containerdConfig, containerdProblem, SOCKET } from "../support/containerd.ts";
import { openHost } from "../support/host.ts";
import { program, root, testNeeding } from "../support/needs.ts";
import { podmanProblem, usePodman } from "../support/podman.ts";
import { pollUntil } from "../support/poll.ts";
import { type ProductImage, productImage, productImageProblem } from "../support/product-image.ts";
import { proofSize } from "../support/proof-size.ts";
import { temporaryDirectory } from "../support/temporary-directory.ts";
import { unpackImage } from "../support/unpack-image.ts";

const { product, nodeAgent } = identity;
const ENTRY = join(import.meta.dir, "../../src/bin/main.ts");
const testImage = testNeeding(productImageProblem());
const testArm64 = testNeeding(
  productImageProblem(),
  program("qemu-aarch64-static"),
  proofSize({ everyDay: "only in `make soak`", soak: undefined }),
);
const testLoaded = testNeeding(root, productImageProblem(), podmanProblem(), containerdProblem());

const directory = temporaryDirectory("image-test");
afterAll(() => directory.remove());

/** Of the unpacked image. */
const rootfs = join(directory.path, "rootfs");

let image: ProductImage;
beforeAll(async () => {
  if (productImageProblem() === undefined) image = await productImage();
}, 120_000);

describe("the image", () => {
  testImage("is the same to the byte if it is built again, elsewhere, later, with other modes and times", async () => {
    const small = join(directory.path, "small");
    writeFileSync(small, "program");
    chmodSync(small, 0o700);
    const first = await build({ executable: small, archive: join(directory.path, "first.tar") });

    const folder = join(directory.path, "elsewhere");
    mkdirSync(folder, { mode: 0o700 });
    const executable = join(folder, "copy");
    copyFileSync(small, executable);
    chmodSync(executable, 0o755);
    const mask = process.umask(0o077);
    const second = await build({ executable, archive: join(folder, "second.tar") });
    process.umask(mask);

    expect(Bun.hash(second)).toBe(Bun.hash(first));
  });

  testImage("has all program names, BIRD and authorities, files of root only, and no absolute link", async () => {
    const files = await unpackImage(image.archive, rootfs);

    expect(files).toContain(`-rwxr-xr-x usr/bin/${product}`);
    for (const name of Object.values(programNames(identity)).filter((each) => each !== product)) {
      expect(files).toContain(`lrwxrwxrwx usr/bin/${name} -> ${product}`);
    }
    expect(files).toContain("-rwxr-xr-x usr/sbin/bird");
    expect(files).toContain("drwxrwxrwt tmp/");
    expect(files.filter((file) => / -> \/|^-..s|^-.....s| \d+\/\d+ /.test(file))).toEqual([]);
    expect(readFileSync(join(rootfs, "etc/ssl/certs/ca-certificates.crt"), "utf8")).toContain("BEGIN CERTIFICATE");
    expect(readFileSync(join(rootfs, "var/lib/dpkg/status.d/bird2"), "utf8")).toStartWith("Package: bird2\n");
  });

  testImage("has a BIRD that runs with its own loader and libraries, seen from outside", async () => {
    const command = birdCommand({ path: "", inContainer: (path) => pathWithinRoot(rootfs, path) });
    const { stderr } = Bun.spawnSync(command?.concat("--version") ?? [], { env: {} });

    expect(command?.at(-1)).toBe(join(rootfs, "usr/sbin/bird"));
    expect(stderr.toString()).toContain("BIRD version 2");
  });

  testLoaded(
    "is loaded by podman and by containerd, and its programs run there",
    async () => {
      await using host = await openHost();
      const podman = usePodman(host);
      expect(await podman.load(image.archive)).toContain(image.name);
      expect((await podman.runOnce(image.name, [nodeAgent, "-v"])).stdout).toContain(VERSION);
      expect((await podman.runOnce(image.name, ["bird", "--version"])).stderr).toContain("BIRD version 2");

      const config = join(host.directory, "containerd.toml");
      host.writeFile(config, containerdConfig(host, image.name));
      host.start(["containerd", "-c", config], "containerd.log");
      await pollUntil(() => existsSync(host.view(SOCKET)), "containerd's socket");
      await host.must(["ctr", "images", "import", image.archive], { limitMilliseconds: 120_000 });
      const runOnce = (...command: readonly string[]) =>
        host.run(["ctr", "run", "--rm", image.name, "once", ...command]);
      expect((await runOnce(nodeAgent, "-v")).stdout).toContain(VERSION);
      expect((await runOnce("bird", "--version")).stderr).toContain("BIRD version 2");
    },
    240_000,
  );

  testArm64(
    "for arm64 has programs that run, BIRD too",
    async () => {
      const [executable, archive] = [join(directory.path, "arm64"), join(directory.path, "arm64.tar")];
      await compileExecutable({ entry: ENTRY, executable, target: "bun-linux-arm64" });
      await build({ executable, archive, architecture: "arm64", version: VERSION });
      const ofArm64 = join(directory.path, "arm64-rootfs");
      await unpackImage(archive, ofArm64);
      const print = (...[file = "", ...args]: readonly string[]) => {
        const { stdout, stderr } = Bun.spawnSync(["qemu-aarch64-static", "-L", ofArm64, join(ofArm64, file), ...args]);
        return `${stdout}${stderr}`;
      };

      expect(print(`usr/bin/${nodeAgent}`, "-v")).toContain(VERSION);
      expect(print("usr/sbin/bird", "--version")).toContain("BIRD version 2");
    },
    300_000,
  );

  test("is not built from an executable with a setuid bit", async () => {
    const executable = join(directory.path, "setuid");
    writeFileSync(executable, "", { mode: 0o755 });
    chmodSync(executable, 0o4755);

    await expect(build({ executable, archive: join(directory.path, "none.tar") })).rejects.toThrow("setuid");
  });
});

test("the image is named after registry, product and version", () => {
  expect(imageName(identity, "v1.2.3")).toBe(`${identity.imageRegistry}${product}:v1.2.3`);
});

async function build(
  request: Pick<ImageRequest, "executable" | "archive"> & Partial<ImageRequest>,
): Promise<Uint8Array> {
  await buildImage({
    names: identity,
    version: "v1.2.3",
    architecture: OWN_ARCHITECTURE,
    time: 1_700_000_000,
    compressionLevel: 1,
    ...request,
  });
  return readFileSync(request.archive);
}
