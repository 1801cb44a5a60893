package innodb

import (
	"slices"
	"testing"
)

func TestTransactions(t *testing.T) {
	const status = `
*** (1) TRANSACTION:
TRANSACTION 12, ACTIVE 9 sec
MySQL thread id 3, OS thread handle 1, query id 1 localhost root
------------
TRANSACTIONS
------------
Trx id counter 2314
LIST OF TRANSACTIONS FOR EACH SESSION:
---TRANSACTION 375300064687680, not started
0 lock struct(s), heap size 1128, 0 row lock(s)
---TRANSACTION 2313, ACTIVE 1 sec starting index read
mysql tables in use 1, locked 1
LOCK WAIT 2 lock struct(s), heap size 1128, 17 row lock(s), undo log entries 3
MySQL thread id 14, OS thread handle 140524394018496, query id 249 localhost root updating
UPDATE zz SET id = 'b' WHERE id = '
LOCK WAIT 5 row lock(s)
MySQL thread id 99,
------- TRX HAS BEEN WAITING 1 SEC FOR THIS LOCK TO BE GRANTED:
RECORD LOCKS space id 52 page no 4 n bits 72 index PRIMARY of table t.zz trx id 2313 lock_mode X waiting
------------------
---TRANSACTION 421, ACTIVE (PREPARED) 86401 sec recovered trx
1 lock struct(s), heap size 1128, 4 row lock(s)
---TRANSACTION (0x7f40f9ffc680), ACTIVE (PREPARED) 12 sec
2 lock struct(s), heap size 1128, 1 row lock(s)
MariaDB thread id 13, OS thread handle 140524423415488, query id 243 localhost root
--------
FILE I/O
`
	want := []Transaction{{14, 1, 17, true}, {13, 12, 1, false}}
	if got := Transactions(status); !slices.Equal(got, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}

	if got := Transactions("nothing of the kind"); got != nil {
		t.Errorf("got %+v of nothing", got)
	}
}
