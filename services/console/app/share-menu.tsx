import { CopyButton } from './copy-button.tsx';
import { curlOf } from './curl-command.ts';
import { Menu } from './menu.tsx';

type Props = {
  id: string;
  /** The path of the task in the API. */
  path: string;
  isSignedIn: boolean;
};

/** Ways to share the task. Each copies a text. The link names the event at the playhead, as the address does. */
export function ShareMenu({ id, path, isSignedIn }: Props) {
  const link = (seq: boolean) => () => {
    const url = new URL(location.href);
    if (!seq) url.searchParams.delete('seq');
    return url.href;
  };
  return (
    <Menu label="Share this task" text="Share">
      <CopyButton text={link(false)} label="Copy the link to this task">
        Copy link
      </CopyButton>
      <CopyButton text={link(true)} label="Copy the link to the shown moment">
        Copy link to this moment
      </CopyButton>
      <CopyButton text={() => curlOf(location.origin, path, isSignedIn)} label="Copy the stream of the task as a curl command">
        Copy as curl
      </CopyButton>
      <CopyButton text={() => `hopline follow ${id}`} label="Copy the command that follows the task">
        Copy hopline follow
      </CopyButton>
    </Menu>
  );
}
