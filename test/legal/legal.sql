-- The changes that rows of runs and jobs may undergo. Each trigger refuses a change that breaks a rule, and names the rule.

CREATE TABLE illegal (
  n    BIGINT       NOT NULL AUTO_INCREMENT,
  what VARCHAR(512) NOT NULL,
  PRIMARY KEY (n)
) ENGINE=MyISAM DEFAULT CHARSET=utf8mb4 COMMENT 'keeps what a rollback takes away';

CREATE TRIGGER run_inserted BEFORE INSERT ON run FOR EACH ROW
BEGIN
  DECLARE broken VARCHAR(200) DEFAULT NULL;
  SET broken = CASE
    WHEN NEW.state = 'waiting' THEN 'a new run does not wait'
    WHEN NEW.state = 'executing' AND (NEW.owner <= 0 OR NEW.started = 0 OR NEW.spawn_by < NEW.started OR NEW.kind <> 'schedule')
      THEN 'a run that starts as it is claimed is of the schedule, and has a session and a spawn window'
    WHEN NEW.state = 'idle' AND NEW.owner <> 0 THEN 'an idle run has no owner'
    WHEN NEW.state = 'ended' AND NEW.owner <> -2 THEN 'an ended run has the owner ended'
    WHEN NEW.state = 'prepared' AND NEW.owner <= 0 THEN 'a prepared run has a session as its owner'
    WHEN NEW.state IN ('prepared', 'executing') AND NEW.claim <> 1 THEN 'a run that is claimed as it is made has the claim count 1'
    WHEN NEW.state = 'ended' AND NEW.outcome = 'none' THEN 'an ended run has an outcome'
    WHEN NEW.state <> 'ended' AND NEW.outcome <> 'none' THEN 'a run that has not ended has no outcome'
    WHEN NEW.reason_code IS NOT NULL AND (NEW.state <> 'ended' OR NEW.reason IS NULL) THEN 'the code of a reason comes with the text, at the end'
    WHEN NEW.kind = 'schedule' AND NEW.request <> 0 THEN 'the schedule is no request'
    WHEN NEW.kind <> 'schedule' AND NEW.request = 0 THEN 'somebody has asked for the run'
  END;
  IF broken IS NOT NULL THEN
    INSERT INTO illegal (what) VALUES (CONCAT('insert of run ', NEW.id, ' of job ', NEW.job_id, ': ', broken));
    SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = broken;
  END IF;
END;

CREATE TRIGGER run_updated BEFORE UPDATE ON run FOR EACH ROW
BEGIN
  DECLARE broken VARCHAR(200) DEFAULT NULL;
  SET broken = CASE
    WHEN NEW.id <> OLD.id OR NEW.job_id <> OLD.job_id OR NEW.due <> OLD.due OR NEW.request <> OLD.request
      OR NEW.kind <> OLD.kind OR NEW.attempt <> OLD.attempt OR NEW.app_id <> OLD.app_id OR NEW.hash <> OLD.hash
      THEN 'what a run is never changes'
    WHEN NEW.claim < OLD.claim THEN 'the claim count never falls'
    WHEN OLD.state = 'ended' AND (NEW.state <> 'ended' OR NEW.outcome <> OLD.outcome OR NEW.ended <> OLD.ended
      OR NEW.claim <> OLD.claim OR NEW.started <> OLD.started OR NEW.owner <> OLD.owner)
      THEN 'an end is written once'
    WHEN NEW.state IN ('prepared', 'executing') AND NEW.owner <= 0 THEN 'a session holds the run'
    WHEN NEW.state = 'idle' AND NEW.owner <> 0 THEN 'an idle run has no owner'
    WHEN NEW.state = 'waiting' AND NEW.owner <> -1 THEN 'a waiting run has the owner waiting'
    WHEN NEW.state = 'ended' AND NEW.owner <> -2 THEN 'an ended run has the owner ended'
    WHEN NEW.state = 'ended' AND NEW.outcome = 'none' THEN 'an ended run has an outcome'
    WHEN NEW.state <> 'ended' AND NEW.outcome <> 'none' THEN 'a run that has not ended has no outcome'
    WHEN NEW.reason_code IS NOT NULL AND (NEW.state <> 'ended' OR NEW.reason IS NULL) THEN 'the code of a reason comes with the text, at the end'
    WHEN OLD.state = 'idle' AND NEW.state = 'executing' THEN 'a start begins with a prepared run'
    WHEN OLD.state IN ('idle', 'waiting') AND NEW.state = 'prepared' AND NEW.claim <> OLD.claim + 1
      THEN 'taking a run raises its claim count'
    WHEN OLD.state = 'prepared' AND NEW.state = 'prepared' AND NEW.owner <> OLD.owner AND NEW.claim <> OLD.claim + 1
      THEN 'taking a run over raises its claim count'
    WHEN OLD.state = 'prepared' AND NEW.state = 'executing' AND (NEW.owner <> OLD.owner OR NEW.claim <> OLD.claim)
      THEN 'a start is by the owner, at its launch'
    WHEN OLD.state = 'prepared' AND NEW.state = 'executing' AND (NEW.started = 0 OR NEW.spawn_by < NEW.due_now)
      THEN 'a start says when, and until when the run may be spawned'
    WHEN OLD.state = 'executing' AND NEW.state = 'executing' AND (NEW.owner <> OLD.owner OR NEW.claim <> OLD.claim)
      THEN 'nobody takes an executing run'
    WHEN OLD.state = 'executing' AND NEW.state IN ('prepared', 'waiting') THEN 'an executing run ends, or is given back unspawned'
    WHEN OLD.state = 'executing' AND NEW.state = 'ended' AND NEW.claim <> OLD.claim THEN 'an end is at the launch that executed'
    WHEN OLD.state = 'waiting' AND NEW.state = 'executing' THEN 'a waiting run is woken first'
  END;
  IF broken IS NOT NULL THEN
    INSERT INTO illegal (what) VALUES (CONCAT('update of run ', OLD.id, ' of job ', OLD.job_id, ', ', OLD.state, ' ', OLD.owner, ' ', OLD.claim,
      ' to ', NEW.state, ' ', NEW.owner, ' ', NEW.claim, ': ', broken));
    SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = broken;
  END IF;
END;

CREATE TRIGGER run_deleted BEFORE DELETE ON run FOR EACH ROW
BEGIN
  DECLARE broken VARCHAR(200) DEFAULT NULL;
  SET broken = CASE
    WHEN OLD.state = 'executing' THEN 'an executing run leaves a record'
    WHEN OLD.kind = 'after' AND OLD.attempt = 1 AND OLD.state = 'prepared' THEN NULL -- its job waits for further ends
    WHEN OLD.state <> 'ended' AND (OLD.kind <> 'schedule' OR OLD.attempt > 1)
      THEN 'only first attempts of the schedule are taken back'
    WHEN OLD.state <> 'ended' AND OLD.due <= (SELECT begun_to FROM job WHERE id = OLD.job_id)
      THEN 'only due times after the last one that has begun are taken back'
  END;
  IF broken IS NOT NULL THEN
    INSERT INTO illegal (what) VALUES (CONCAT('delete of run ', OLD.id, ' of job ', OLD.job_id, ', ', OLD.state, ': ', broken));
    SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = broken;
  END IF;
END;

CREATE TRIGGER job_updated BEFORE UPDATE ON job FOR EACH ROW
BEGIN
  DECLARE broken VARCHAR(200) DEFAULT NULL;
  SET broken = CASE
    WHEN NEW.id <> OLD.id OR NEW.hash <> OLD.hash THEN 'what a job is never changes'
    WHEN NEW.begun_to < OLD.begun_to THEN 'begun_to never falls'
    WHEN NEW.version < OLD.version THEN 'the version never falls'
    WHEN NOT NEW.next_due <=> OLD.next_due AND NEW.next_due <= NEW.begun_to
      THEN 'the cursor never moves to or behind what has begun'
    WHEN OLD.living IS NULL AND NEW.living IS NOT NULL THEN 'a deleted job stays deleted'
    WHEN NEW.living IS NULL AND NEW.next_due IS NOT NULL THEN 'a deleted job has no cursor'
  END;
  IF broken IS NOT NULL THEN
    INSERT INTO illegal (what) VALUES (CONCAT('update of job ', OLD.id, ': ', broken));
    SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = broken;
  END IF;
END;
