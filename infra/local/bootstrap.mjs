// The first code a stranger's machine runs. It keeps to syntax that Node 12 can parse, so that an old Node gets a sentence
// instead of a SyntaxError; everything newer is behind the dynamic import.
const NODE_MAJOR_MIN = 20;
const major = Number(process.versions.node.split('.')[0]);

if (major < NODE_MAJOR_MIN) {
  console.error(
    `hopline: Node ${process.versions.node} is too old to set Hopline up; install Node ${NODE_MAJOR_MIN} or newer (https://nodejs.org) and run the command again.`,
  );
  process.exit(1);
}
import('./bootstrap/main.mjs').then(door => door.main(process.argv.slice(2)));
