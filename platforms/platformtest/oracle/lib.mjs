// The script's end of the talk with the Go test: report what happened, wait for what is asked.
import { createInterface } from 'node:readline';

const waiting = [];
const come = [];
const input = createInterface({ input: process.stdin });
input.on('line', (line) => {
  const value = JSON.parse(line);
  const next = waiting.shift();
  if (next) next(value);
  else come.push(value);
});
input.on('close', () => process.exit(0));

// report tells the test that a step happened, with what was seen.
export function report(step, data = {}) {
  process.stdout.write(JSON.stringify({ step, data }) + '\n');
}

// told returns the next command of the test: { do: "...", ... }.
export function told() {
  const value = come.shift();
  return value !== undefined ? Promise.resolve(value) : new Promise((resolve) => waiting.push(resolve));
}

// fail ends the script with an error that the test shows.
export function fail(error) {
  const text = error?.stack ?? String(error);
  process.stdout.write(JSON.stringify({ step: 'failed', data: { error: text } }) + '\n', () => process.exit(1));
}

process.on('uncaughtException', fail);
process.on('unhandledRejection', fail);
