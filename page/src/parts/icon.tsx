// Drawn by strokes on a 20 by 20 grid.
const paths = {
  jobs: 'M4 5h12M4 10h12M4 15h7',
  runs: 'M6 4l9 6-9 6z',
  upcoming: 'M4 6h12v10H4zM4 9h12M7 3v4M13 3v4',
  timeline: 'M3 5h7M7 10h9M5 15h6',
  heat: 'M4 4h3v3H4zM9 4h3v3H9zM14 4h3v3h-3zM4 9h3v3H4zM9 9h3v3H9zM14 9h3v3h-3zM4 14h3v3H4zM9 14h3v3H9z',
  cluster: 'M4 4h12v4H4zM4 12h12v4H4zM7 6h0M7 14h0',
  activity: 'M3 10h3l2-5 4 10 2-5h3',
  settings: 'M3 6h7M14 6h3M3 14h3M10 14h7M12 4v4M8 12v4',
  search: 'M9 3.5a5.5 5.5 0 1 0 0 11a5.5 5.5 0 1 0 0-11M13 13l4 4',
  plus: 'M10 4v12M4 10h12',
  pause: 'M7 4v12M13 4v12',
  play: 'M6 4l10 6-10 6z',
  stop: 'M5 5h10v10H5z',
  edit: 'M4 16l1-4 8-8 3 3-8 8zM11 6l3 3',
  copy: 'M7 7h9v9H7zM4 13V4h9',
  trash: 'M4 6h12M8 6V4h4v2M6 6l1 11h6l1-11',
  clock: 'M10 3a7 7 0 1 0 0 14a7 7 0 1 0 0-14M10 6v4l3 2',
  history: 'M4 10a6 6 0 1 0 2-4.5M4 3v4h4M10 7v3l2 2',
  warning: 'M10 3l8 14H2zM10 8v4M10 14.5h0',
  check: 'M4 10l4 4 8-9',
  cross: 'M5 5l10 10M15 5L5 15',
  down: 'M5 8l5 5 5-5',
  up: 'M5 12l5-5 5 5',
  right: 'M8 5l5 5-5 5',
  left: 'M12 5l-5 5 5 5',
  more: 'M10 4.400a.6.6 0 1 0 .01 0M10 9.400a.6.6 0 1 0 .01 0M10 14.400a.6.6 0 1 0 .01 0',
  menu: 'M3 6h14M3 10h14M3 14h14',
  sun: 'M10 7a3 3 0 1 0 0 6a3 3 0 1 0 0-6M10 2v2M10 16v2M2 10h2M16 10h2M4.5 4.5l1.4 1.4M14.1 14.1l1.4 1.4M4.5 15.5l1.4-1.4M14.1 5.9l1.4-1.4',
  moon: 'M16 12.5A7 7 0 0 1 7.5 4a6.5 6.5 0 1 0 8.5 8.5z',
  out: 'M8 4H4v12h4M9 10h8M14 7l3 3-3 3',
  download: 'M10 3v9M6 9l4 4 4-4M4 16h12',
  link: 'M8 12l4-4M7 9l-2 2a3 3 0 0 0 4 4l2-2M13 11l2-2a3 3 0 0 0-4-4L9 7',
  wrap: 'M3 5h14M3 10h11a3 3 0 0 1 0 6h-3M13 14l-2 2 2 2M3 15h5',
  bolt: 'M11 2L4 11h5l-1 7 7-9h-5z',
  key: 'M7 9a3.5 3.5 0 1 0 .1 0M9.5 10.5L17 4M14 6.5l2 2',
  lock: 'M5 9h10v8H5zM7 9V6a3 3 0 0 1 6 0v3',
  question: 'M7 7a3 3 0 1 1 4.5 2.6c-1 .6-1.5 1.2-1.5 2.4M10 15h0',
  globe: 'M10 3a7 7 0 1 0 0 14a7 7 0 1 0 0-14M3 10h14M10 3c5 4.5 5 9.500 0 14c-5-4.500-5-9.500 0-14',
  bell: 'M5 14h10l-1.200-2V9a3.800 3.800 0 0 0-7.600 0v3zM9 16.500h2M10 3.500v1.500',
  filter: 'M3 5h14l-5.5 6v5l-3-1.5V11z',
};

export type IconName = keyof typeof paths;

export const Icon = ({ name }: { name: IconName }) => (
  <svg class="icon" viewBox="0 0 20 20" aria-hidden="true"><path d={paths[name]} /></svg>
);

/** The mark: a clock's face. */
export const Mark = () => (
  <svg class="mark" viewBox="0 0 32 32" aria-hidden="true">
    <rect width="32" height="32" rx="8" />
    <circle cx="16" cy="16" r="9" />
    <path d="M16 10.5V16l3.8 2.6" />
  </svg>
);
