import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { birdCommand } from "./bird-command.ts";

describe("birdCommand()", () => {
  const directory = mkdtempSync(join(tmpdir(), "bird-command-"));
  const image = join(directory, "image");
  const path = join(directory, "bin");
  const inImage = (file: string) => join(image, file === "/usr/libexec/bird" ? "/usr/lib/arch/loader" : file);
  const nowhere = (file: string) => join(directory, "nowhere", file);
  beforeAll(() => {
    for (const file of [join(path, "bird"), join(image, "usr/sbin/bird"), join(image, "usr/lib/arch/loader")]) {
      mkdirSync(dirname(file), { recursive: true });
      writeFileSync(file, "#!/bin/sh\n", { mode: 0o755 });
    }
    mkdirSync(join(image, "usr/libexec"));
    symlinkSync("../lib/arch/loader", join(image, "usr/libexec/bird"));
  });
  afterAll(() => rmSync(directory, { recursive: true }));

  test("starts BIRD of the image with its own loader and libraries, although the host has one", () => {
    expect(birdCommand({ path, inContainer: inImage })).toEqual([
      join(image, "usr/libexec/bird"),
      "--library-path",
      join(image, "usr/lib/arch"),
      "--argv0",
      "bird",
      join(image, "usr/sbin/bird"),
    ]);
  });

  test("starts BIRD of the host outside a container", () => {
    expect(birdCommand({ path, inContainer: () => undefined })).toEqual([join(path, "bird")]);
  });

  test("starts BIRD of the host if the image has none", () => {
    expect(birdCommand({ path, inContainer: nowhere })).toEqual([join(path, "bird")]);
  });
});
