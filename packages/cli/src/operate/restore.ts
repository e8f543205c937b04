import { command } from '../command/command.ts';
import { one } from '../command/subjects.ts';
import { copyStreams } from './copy-streams.ts';

export const restore = command({
  name: 'restore',
  subject: one('FOLDER', 'the folder of a backup', 'files'),
  summary: 'restores a backup into a NATS server without streams of Hopline',
  details: 'checks the folder first; each stream gets HOPLINE_REPLICAS replicas; a failed restore removes what it has restored',
  asksNoServer: true,
  options: {},
  notes:
    'Requires NATS_URL and a user with all permissions. Stop all services before, because a running relay creates empty streams, and start them ' +
    'afterwards.',
  run: ({ subject: folder }, context) => copyStreams('restore', folder, context),
});
