/** A stop does not wait for the answer: rejects with the reason of the signal. */
export function unlessStopped<Answer>(answer: Promise<Answer>, stop: AbortSignal): Promise<Answer> {
  const { promise, resolve, reject } = Promise.withResolvers<Answer>();
  const giveUp = () => reject(stop.reason);
  if (stop.aborted) giveUp();
  stop.addEventListener("abort", giveUp, { once: true });
  answer.then(resolve, reject);
  return promise.finally(() => stop.removeEventListener("abort", giveUp));
}
