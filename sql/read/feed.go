package read

import "context"

// LastBackfill returns the id of the latest backfill, or zero.
func (db Watch) LastBackfill(ctx context.Context) (int64, error) {
	rows, err := db.Backfills(ctx, 0, 0, nil, 1)
	if err != nil || len(rows) == 0 {
		return 0, err
	}
	return rows[0].ID, nil
}
