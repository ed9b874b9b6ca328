import { describe, expect, test } from "bun:test";
import { dependsOnProcess } from "./process-path.ts";

describe("dependsOnProcess()", () => {
  test.each([
    "/proc/self/ns/net",
    "/proc/thread-self/ns/net",
    "/proc/self/fd/9",
    "/dev/fd/9",
    "/dev/stdin",
    "//proc/self/ns/net",
    "/proc//self/fd/9",
    "/./proc/./self/fd/9",
    "/run/netns/../../proc/self/fd/9",
    "/run/netns/..",
    "/proc/1/root/proc/self/fd/9",
    "/proc/1/fd/9",
    "/proc/1/../self/fd/9",
    "proc/1/ns/net",
    "netns",
  ])("says so of %s", (path) => {
    expect(dependsOnProcess(path)).toBe(true);
  });

  test.each([
    "",
    "/run/netns/cni-1",
    "/var/run/netns/cni-1",
    "/run/netns/self",
    "/proc/4711/ns/net",
    "/proc/4711/task/4712/ns/net",
    "//proc/4711/ns/net",
    "/var/run/docker/netns/0123",
    "/procession/self",
    "/run/user/0/netns/a",
  ])("does not say so of %s", (path) => {
    expect(dependsOnProcess(path)).toBe(false);
  });
});
