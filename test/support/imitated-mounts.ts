/** Mounts of directories that are only remembered, as the kernel remembers them when a process is killed. */
import { statSync } from "node:fs";
import type { Mounts } from "../../src/alp/volume/volume-files.ts";
import { effect } from "../../src/effect.ts";

interface Mount {
  readonly directory: string;
  isReadOnly: boolean;
}

export class ImitatedMounts implements Mounts {
  /** By the directory that something is mounted on, the newest last. */
  readonly mounted = new Map<string, Mount[]>();

  mountReadOnly(directory: string, target: string): void {
    const mount = { directory, isReadOnly: false };
    if (!statSync(target).isDirectory()) throw new Error("not a directory");
    effect("mount", () => this.mounted.set(target, [...(this.mounted.get(target) ?? []), mount]));
    effect("restrict", () => {
      mount.isReadOnly = true;
    });
  }

  isMountedReadOnly(directory: string, target: string): boolean {
    const [mount, ...others] = this.mounted.get(target) ?? [];
    return mount?.directory === directory && mount.isReadOnly && others.length === 0;
  }

  unmountAll(target: string): void {
    while ((this.mounted.get(target)?.length ?? 0) > 0) effect("unmount", () => this.mounted.get(target)?.pop());
    this.mounted.delete(target);
  }
}
