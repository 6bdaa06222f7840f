//! Logs of several files and tables: order of columns, additional columns, empty files, and the file in messages.

mod common;

use common::{imported, refusal, rows, try_import, warns};

const MAP: &str = "mapping = 1\n[trace]\njob = \"id\"\nsubmit = \"submit\"\nduration = \"duration\"\ncpu = \"cpu\"\n";
const LOG: &str = "id,submit,duration,cpu\n1,5,9,2\n2,6,9,1\n";

#[test]
fn later_files_of_json_may_have_other_keys() {
    let first = "{\"id\": 1, \"submit\": 5, \"duration\": 9, \"cpu\": 2, \"tag\": 1}\n{\"id\": 2, \"submit\": 6, \"duration\": 9, \"cpu\": 1}\n";
    let second = "{\"cpu\": 3, \"zone\": \"x\", \"duration\": 4, \"submit\": 7, \"id\": 3}\n{\"submit\": 8, \"id\": 4, \"duration\": 4, \"cpu\": 1}\n";
    let array = |lines: &str| format!("[{}]", lines.trim().replace('\n', ","));
    for form in ["", "format = \"json-lines\"\n"] {
        let workload = imported(&format!("{MAP}[input]\n{form}"), &[("a.json", first), ("b.json", second)]);
        let want = [("1", 0.0, 9.0), ("2", 1.0, 9.0), ("3", 2.0, 4.0), ("4", 3.0, 4.0)];
        assert_eq!(rows(&workload), want.map(|(job, submit, duration)| (job.to_owned(), submit, duration)));
        warns(&workload, "columns of a.json that the mapping does not name: tag, zone");
    }
    let arrays = [array(first), array(second)];
    let workload = imported(MAP, &[("a.json", &arrays[0]), ("b.json", &arrays[1])]);
    assert_eq!(rows(&workload).len(), 4);
    // A key that only the later file has can be read, ignored or counted.
    let map = format!(
        "{MAP}label = \"if known(zone) then concat('zone=', zone) else missing\"\n[fields]\ntag = \"counted: a tag\"\n"
    );
    let workload = imported(&map, &[("a.json", first), ("b.json", second)]);
    assert_eq!(workload.sets.iter().filter(|set| set.label.is_some()).count(), 1);
    assert_eq!(workload.quality.warnings, ["column tag is not read, and 1 rows have a value: a tag"]);
}

#[test]
fn later_tables_of_text_may_have_another_order_and_more_columns() {
    let other = "cpu,note,duration,submit,id\n3,x,4,7,3\n";
    let workload = imported(MAP, &[("a.csv", LOG), ("b.csv", other)]);
    assert_eq!(rows(&workload)[2], ("3".to_owned(), 2.0, 4.0));
    warns(&workload, "columns of later files that the mapping does not name: note (b.csv)");
    let ignored =
        imported(&format!("{MAP}[fields]\nnote = \"ignored: a note\"\n"), &[("a.csv", LOG), ("b.csv", other)]);
    assert!(ignored.quality.warnings.is_empty(), "{:?}", ignored.quality);
    let message = refusal(&format!("{MAP}label = \"note\"\n"), &[("a.csv", LOG), ("b.csv", other)]);
    assert!(message.contains("'note' is a column of b.csv, but not of the first file"), "{message}");
    // A fold has its own columns behind those of the log, although a later file has more.
    let map = "mapping = 1\n[fold]\nkey = \"id\"\ntime = \"t\"\nevent = \"e\"\nsubmit = [0]\nstart = [1]\nend = { done = [2] }\n\
               [trace]\njob = \"id\"\nsubmit = \"first_submit\"\nduration = \"last_end - last_start\"\ncpu = \"1\"\n";
    let workload =
        imported(map, &[("a.csv", "id,t,e\n1,5,0\n1,6,1\n"), ("b.csv", "id,t,e,x\n1,9,2,7\n2,1,0,\n2,2,1,\n2,3,2,\n")]);
    assert_eq!(rows(&workload), [("2".to_owned(), 0.0, 1.0), ("1".to_owned(), 4.0, 3.0)]);
}

#[test]
fn other_forms_of_later_files_are_reported() {
    let workload = imported(MAP, &[("a.csv", LOG), ("b.csv", &LOG.replace(',', ";")), ("c.csv", LOG)]);
    assert_eq!(workload.sets.len(), 6);
    let input = "fields separated by ',', fields separated by ';' in b.csv";
    assert_eq!(workload.quality.assumptions[0], ("input".to_owned(), input.to_owned()));
}

#[test]
fn empty_files_have_no_rows() {
    for files in [
        [("a.csv", LOG), ("b.csv", "")],
        [("a.csv", "\n"), ("b.csv", LOG)],
        [("a.csv", LOG), ("b.csv", "id,submit,duration,cpu\n")],
    ] {
        assert_eq!(rows(&imported(MAP, &files)).len(), 2, "{files:?}");
    }
    let stated = "mapping = 1\ninput.columns = [\"id\", \"submit\", \"duration\", \"cpu\"]\n[trace]\nsubmit = \"submit\"\nduration = \"duration\"\ncpu = \"cpu\"\n";
    let positions = "mapping = 1\ninput.header = false\n[trace]\nsubmit = \"$2\"\nduration = \"$3\"\ncpu = \"$4\"\n";
    for map in [stated, positions] {
        for files in [[("a", ""), ("b", "1,5,9,2\n")], [("a", "1,5,9,2\n"), ("b", "")]] {
            assert_eq!(rows(&imported(map, &files)).len(), 1, "{map}");
        }
    }
    let json = "[{\"id\": 1, \"submit\": 5, \"duration\": 9, \"cpu\": 2}]";
    assert_eq!(rows(&imported(MAP, &[("a.json", "[]"), ("b.json", json), ("c.json", "")])).len(), 1);
    for text in ["[]", "", " \n"] {
        let message = refusal(MAP, &[("log.json", text)]);
        assert!(message.contains("log.json") && message.contains("has no"), "{text}: {message}");
        assert!(!message.trim_end().ends_with("expected"), "{text}: {message}");
    }
}

#[test]
fn messages_name_the_file_of_the_row() {
    let wrong = "id,submit,duration,cpu\n3,x,9,2\n4,y,9,2\n5,z,9,2\n";
    let message = refusal(MAP, &[("a.csv", LOG), ("b.csv", wrong)]);
    assert!(message.starts_with("b.csv, line 2, column 'submit'") && message.contains("3 of 5 rows"), "{message}");
    let error = try_import(MAP, &[("a.csv", LOG), ("b.csv", wrong)], true).expect_err("strict").to_string();
    assert!(error.starts_with("b.csv, line 2, column 'submit'"), "{error}");
    let few = "id,submit,duration,cpu\n3,x,9,2\n1,1,,2\n";
    let quality = imported(
        &format!("{MAP}[attempts]\nkey = \"id\"\nuse = \"last\"\n"),
        &[("a.csv", LOG), ("b.csv", few), ("c.csv", "id,submit,duration,cpu\n1,7,9,2\n")],
    )
    .quality;
    let (line, problem) = &quality.first_dropped["unusable submit"];
    assert!(*line == 2 && problem.ends_with("; in b.csv"), "{problem}");
    assert_eq!(quality.first_dropped["no duration"], (3, "of b.csv".to_owned()));
    assert_eq!(quality.first_dropped["an earlier attempt of the same execution"], (2, "of a.csv".to_owned()));
    let early = imported(
        &format!("{MAP}[time]\norigin = 6\n"),
        &[("b.csv", "id,submit,duration,cpu\n7,8,9,2\n"), ("a.csv", LOG)],
    );
    assert_eq!(early.quality.first_dropped["submitted before the origin"], (2, "of a.csv".to_owned()));
}

#[test]
fn tables_without_files_are_named() {
    let join = "[[table]]\nname = \"users\"\njoin = { key = \"id\" }\n";
    let map = format!("{MAP}[[table]]\nname = \"jobs\"\n{join}");
    let message = refusal(&map, &[("log.csv", LOG)]);
    assert!(
        message.contains("table 'users' has no 'files', so that no file belongs to it; expected a pattern"),
        "{message}"
    );
    let map = format!(
        "{MAP}[[table]]\nname = \"jobs\"\nfiles = \"j*\"\n[[table]]\nfiles = \"u*\"\nname = \"users\"\njoin = {{ key = \"id\" }}\n"
    );
    let message = refusal(&map, &[("j.csv", LOG)]);
    assert!(message.contains("table 'users' has no file; expected a file with a name such as u*"), "{message}");
}

#[test]
fn columns_of_joined_tables_are_accounted_for() {
    let map = format!(
        "{MAP}user = \"users.name\"\n[[table]]\nname = \"jobs\"\nfiles = \"j*\"\n[[table]]\nfiles = \"u*\"\nname = \"users\"\njoin = {{ key = \"id\" }}\n"
    );
    let users = "id,name,group,quota,mail\n1,ann,g,7,\n2,bob,h,,\n";
    let files = [("j.csv", LOG), ("u.csv", users)];
    let workload = imported(&map, &files);
    warns(&workload, "columns of table 'users' that the mapping does not name: group, quota, mail");
    let named = format!(
        "{map}[fields]\n\"users.group\" = \"ignored: a group\"\nquota = \"counted: a quota\"\nmail = \"counted: mail\"\n"
    );
    let workload = imported(&named, &files);
    assert_eq!(workload.quality.warnings, ["column quota is not read, and 1 rows have a value: a quota"]);
    // A row of a joined table that cannot be read is counted, or an error.
    let damaged = [("j.csv", LOG), ("u.csv", "id,name,group,quota,mail\n1,ann,g,7,\n2,bob,h,,\n1,eva,g,7,\n3,max\n")];
    let workload = imported(&named, &damaged);
    warns(&workload, "1 rows of table 'users' have the key of an earlier row and are not used (first line 4 of u.csv)");
    warns(&workload, "1 rows of table 'users' cannot be read or have no key (first line 5 of u.csv)");
    let error = try_import(&named, &damaged, true).expect_err("strict").to_string();
    assert!(error.starts_with("u.csv, line 5: has 2 fields; expected 5"), "{error}");
    let message = refusal(&named.replace("users.group", "users.groups"), &files);
    assert!(message.contains("'users.groups' is no column of j.csv (did you mean 'users.group'?)"), "{message}");
}

#[test]
fn names_of_several_columns_are_refused() {
    let log = "id,submit,duration,cpu,cpu\n1,5,9,2,4\n";
    let message = refusal(MAP, &[("log.csv", log)]);
    assert!(
        message.contains("'cpu' is the name of the columns $4 and $5; write the position, such as $4"),
        "{message}"
    );
    let workload = imported(&MAP.replace("\"cpu\"", "\"$5\""), &[("log.csv", log)]);
    assert_eq!(workload.sets[0].demand[0], 4000);
    let map = format!(
        "{MAP}user = \"name\"\n[[table]]\nname = \"jobs\"\nfiles = \"j*\"\n[[table]]\nfiles = \"u*\"\nname = \"users\"\njoin = {{ key = \"id\" }}\n"
    );
    let users = "id,name,name\n1,ann,eva\n2,bob,max\n";
    let message = refusal(&map, &[("j.csv", LOG), ("u.csv", users)]);
    assert!(message.contains("write the position, such as `users.$2`"), "{message}");
    let workload = imported(&map.replace("\"name\"\n[", "\"`users.$3`\"\n["), &[("j.csv", LOG), ("u.csv", users)]);
    assert_eq!(workload.users.name(workload.sets[0].user.0), "eva");
}
