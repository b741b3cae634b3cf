// The smallest script: it shows that the talk works.
import { report, told } from './lib.mjs';

report('ready', { node: process.version });
for (;;) {
  const command = await told();
  report('heard', command);
}
