/** A patch cannot be applied: says which part of it, and why. */
export class PatchError extends Error {
  override readonly name = "PatchError";
}
