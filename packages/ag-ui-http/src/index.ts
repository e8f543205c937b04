export { agUiFront } from './ag-ui-front.ts';
