import { command } from '../command/command.ts';
import { one } from '../command/subjects.ts';
import { copyStreams } from './copy-streams.ts';

export const backup = command({
  name: 'backup',
  subject: one('FOLDER', 'one new folder', 'files'),
  summary: 'writes all streams of the log into a folder, while the cluster runs',
  details: 'like `nats stream backup`, with one folder for each stream; prints how many messages and bytes each stream has',
  asksNoServer: true,
  options: {},
  notes:
    'Reads NATS (NATS_URL, default: the local cluster of `npm start`) as the user `admin`. The folder contains the texts of all tasks, ' +
    'and secrets of webhooks as HOPLINE_SECRETS_KEY has encrypted them.',
  run: ({ subject: folder }, context) => copyStreams('backup', folder, context),
});
