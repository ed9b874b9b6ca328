/** The release in the name of an image. Pure. */
import { isRelease } from "../../model/release.ts";

/** `undefined` for a digest, a missing tag or a tag that is not a version: only the user knows which release that is. */
export function imageVersion(image: string): string | undefined {
  const tag = /:([^:/@]+)$/.exec(withoutDigest(image))?.[1];
  if (tag === undefined || image.includes("@") || !isRelease(tag)) return undefined;
  return tag.startsWith("v") ? tag : `v${tag}`;
}

function withoutDigest(image: string): string {
  return image.split("@")[0] ?? image;
}
