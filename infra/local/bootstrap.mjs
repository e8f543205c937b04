// Entry point of every npm script. Its syntax is that of Node 12, so that an old Node prints the message below instead of a
// SyntaxError; newer syntax is behind the dynamic import.
const NODE_MAJOR_MIN = 20;
const major = Number(process.versions.node.split('.')[0]);

if (major < NODE_MAJOR_MIN) {
  console.error(
    `hopline: Node ${process.versions.node} is too old for Hopline; install Node ${NODE_MAJOR_MIN} or newer (https://nodejs.org) and run the command again`,
  );
  process.exit(1);
}
import('./bootstrap/main.mjs').then(({ main }) => main(process.argv.slice(2)));
