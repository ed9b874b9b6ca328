/** A resource that is refused: by the codec of the model, and by the API server. */
export interface BadResource {
  readonly what: string;
  readonly kind: string;
  readonly name?: string;
  readonly spec: Readonly<Record<string, unknown>>;
  /** What the codec complains about. */
  readonly path: string;
  readonly message: string;
  /** The words of the API server, if they are not the same: its own checks have their own. */
  readonly onServer?: string;
}
