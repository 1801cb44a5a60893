import type { Calendar, CalendarDay } from '../types';

// Changes of single days in a calendar's definition.

const oneDay = 86400_000;
const later = (date: string, days: number) => new Date(Date.parse(date) + days * oneDay).toISOString().slice(0, 10);
const yearly = (d: CalendarDay) => d.date.length === 5; // 12-25, not 2027-12-25

/** Whether an entry names a date. A yearly range may go across the end of the year. */
export function names(d: CalendarDay, date: string): boolean {
  const at = yearly(d) ? date.slice(5) : date, end = d.end ?? d.date;
  return d.date <= end ? d.date <= at && at <= end : at >= d.date || at <= end;
}

/** A list without a date. Ranges are cut in two around it; yearly entries stay. */
export function without(list: CalendarDay[] | undefined, date: string): CalendarDay[] {
  return (list ?? []).flatMap((d) => {
    if (yearly(d) || !names(d, date)) return [d];

    const end = d.end ?? d.date;
    const part = (from: string, to: string): CalendarDay[] =>
      from > to ? [] : [{ ...d, date: from, end: from === to ? undefined : to }];
    return [...part(d.date, later(date, -1)), ...part(later(date, 1), end)];
  });
}

const weekdays = ['sun', 'mon', 'tue', 'wed', 'thu', 'fri', 'sat'];
/** The names of weekdays as a calendar has them, from Monday on. */
export const weekdayNames = [...weekdays.slice(1), weekdays[0]];

/** Whether a yearly entry opens a date, so that an entry for the date alone cannot close it. */
export const opensYearly = (c: Calendar, date: string) => !!c.include?.some((d) => yearly(d) && names(d, date));

/** The calendar with a day closed, or open again. */
export function withDay(c: Calendar, date: string, closed: boolean, note: string): Calendar {
  const exclude = without(c.exclude, date), include = without(c.include, date);
  if (closed) return { ...c, include, exclude: [...exclude, { date, ...(note && { note }) }] };

  const weekday = weekdays[new Date(date).getUTCDay()];
  const stillClosed = c.exclude_weekdays?.includes(weekday) || exclude.some((d) => names(d, date));
  return { ...c, exclude, include: stillClosed ? [...include, { date, ...(note && { note }) }] : include };
}
