/** `mirror:5000/own/vendor:v1@sha256:…` in another release. */
export function inRelease(image: string, version: string): string {
  return `${image.replace(/@.*$/, "").replace(/:[^/:]*$/, "")}:${version}`;
}
