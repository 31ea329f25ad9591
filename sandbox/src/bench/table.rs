//! The report as Markdown, which reads well on a terminal too: a line a figure, and of contention a line a course.

use std::fmt;

use super::{Plan, Report, Row, Section, statistics::millis};

/// The columns of contention: the last part of a row's id, and what it is.
const COURSE: [(&str, &str); 6] = [
    ("total", "total over the serial minimum"),
    ("requests", "requests a contender"),
    ("handover", "release to next grant, p50"),
    ("longest_wait", "longest wait"),
    ("fairness", "longest wait of the first half over that of the last in line"),
    ("gave_up", "gave up"),
];

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}", self.machine)?;
        let Plan { seed, latency, polling, quick, .. } = &self.plan;
        let quick = if *quick { ", quick: few repetitions, short leases" } else { "" };
        let (latency, polling, took) = (millis(*latency), polling.name(), self.took.as_secs_f64());
        writeln!(
            f,
            "Seed {seed}, {latency} ms added to every request, polling {polling}{quick}. It took {took:.0} s."
        )?;
        self.figures(f)?;
        self.courses(f)?;
        let missed = self.missed();
        if missed.is_empty() {
            return writeln!(f, "\nEvery goal was met.");
        }
        writeln!(f, "\nGoals that were missed:\n")?;
        for row in missed {
            let goal = row.goal.map_or_else(String::new, |goal| row.unit.show(goal));
            writeln!(f, "- `{}`, {}: {} instead of at most {goal}", row.id, row.what, row.unit.show(row.value))?;
        }
        Ok(())
    }
}

impl Report {
    fn figures(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let of = |section: Section| self.rows.iter().filter(move |row| row.section == section);
        let sections = Section::ALL.into_iter().filter(|section| *section != Section::Contention);
        let mut sections = sections.filter(|section| of(*section).next().is_some()).peekable();
        if sections.peek().is_some() {
            writeln!(f, "\n| what | measured | in requests | goal | met | |\n|---|---:|---:|---:|---|---|")?;
        }
        for section in sections {
            let floor = self.floors.iter().find(|(of, _)| *of == section).map(|(_, floor)| floor);
            let floor =
                floor.map_or_else(String::new, |floor| format!("one request: {:.2} ms", millis(floor.request())));
            writeln!(f, "| **{}** | | | | | {floor} |", section.title())?;
            for row in of(section) {
                let requests = row.in_requests.map_or_else(String::new, |requests| format!("{requests:.2}"));
                let goal = row.goal.map_or_else(String::new, |goal| format!("≤ {}", row.unit.show(goal)));
                let met = row.met().map_or("", |met| if met { "yes" } else { "**no**" });
                let (what, value, note) = (&row.what, row.unit.show(row.value), &row.note);
                writeln!(f, "| {what} | {value} | {requests} | {goal} | {met} | {note} |")?;
            }
        }
        Ok(())
    }

    fn courses(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let rows: Vec<_> = self.rows.iter().filter(|row| row.section == Section::Contention).collect();
        if rows.is_empty() {
            return Ok(());
        }
        write!(f, "\n| {} |", Section::Contention.title())?;
        COURSE.iter().try_for_each(|(_, what)| write!(f, " {what} |"))?;
        write!(f, " requests, seconds |\n|---|---:|---:|---:|---:|---:|---:|---|\n")?;
        for course in rows.chunk_by(|one, other| course_of(one) == course_of(other)) {
            let cell = |name: &str| course.iter().find(|row| row.id.ends_with(&format!(".{name}")));
            let title = course.first().and_then(|row| row.what.split_once(": ")).map_or("", |(title, _)| title);
            write!(f, "| {title} |")?;
            for (name, _) in COURSE {
                write!(f, " {} |", cell(name).map_or_else(String::new, |row| shown(row)))?;
            }
            let notes = ["total", "requests", "handover"].map(|name| cell(name).map_or("", |row| row.note.as_str()));
            writeln!(f, " {} |", notes.join("; "))?;
        }
        Ok(())
    }
}

/// The run that a row is of: its id without the last part.
fn course_of(row: &Row) -> &str {
    row.id.rsplit_once('.').map_or("", |(course, _)| course)
}

/// A figure, and its goal where it has one.
fn shown(row: &Row) -> String {
    let value = row.unit.show(row.value);
    match (row.goal, row.met()) {
        (Some(goal), Some(true)) => format!("{value} (≤ {goal})"),
        (Some(goal), _) => format!("**{value}** (missed: ≤ {goal})"),
        (None, _) => value,
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::super::{Polling, machine::Machine, report::Unit};
    use super::*;

    fn report() -> Report {
        let row = |section, id: &str, value, unit| Row::new(section, id, format!("50 at once: {id}"), value, unit);
        let rows = vec![
            row(Section::Invocation, "writes", 3.0, Unit::Requests).at_most(2.0).deterministic(),
            row(Section::Invocation, "before", 1.101, Unit::RequestTimes).at_most(1.1),
            row(Section::Contention, "50.at_once.total", 2.17, Unit::Ratio).at_most(1.15),
            row(Section::Contention, "50.at_once.requests", 8.0, Unit::Requests).at_most(9.0).note("400 Acquire"),
            row(Section::Contention, "50.spread.total", 0.95, Unit::Ratio),
        ];
        let plan = Plan {
            sections: Section::ALL.to_vec(),
            seed: 7,
            quick: false,
            latency: Duration::from_millis(5),
            contenders: vec![50],
            polling: Polling::Tickets,
        };
        Report { plan, machine: Machine::default(), floors: Vec::new(), took: Duration::from_secs(61), rows }
    }

    #[test]
    fn what_was_missed_is_marked_and_listed_and_nothing_is_left_out() {
        let report = report();
        let text = report.to_string();
        let lines: Vec<_> = text.lines().collect();
        let found = |wanted: &str| lines.iter().any(|line| line.contains(wanted));
        assert!(found("| 50 at once: writes | 3 |  | ≤ 2 | **no** |"), "{text}");
        // A third decimal is no miss.
        assert!(found("| 50 at once: before | 1.10 requests |  | ≤ 1.10 requests | yes |"), "{text}");
        assert!(found("**2.17** (missed: ≤ 1.15) | 8 (≤ 9) |"), "{text}");
        assert!(
            found("- `contention.50.at_once.total`, 50 at once: 50.at_once.total: 2.17 instead of at most 1.15"),
            "{text}"
        );
        assert_eq!(
            lines.iter().filter(|line| line.starts_with("| 50 at once |")).count(),
            2,
            "a line a course: {text}"
        );
        assert_eq!(report.broken().iter().map(|row| row.id.as_str()).collect::<Vec<_>>(), ["invocation.writes"]);
    }

    #[test]
    fn json_has_every_row_and_names_those_that_were_missed() {
        let json = report().to_json();
        assert_eq!(json["format"], "leasehold-bench/1");
        assert_eq!(json["rows"].as_array().unwrap().len(), 5);
        assert_eq!(json["rows"][0]["goal_at_most"], 2.0);
        assert_eq!((&json["rows"][1]["met"], &json["rows"][4]["met"]), (&true.into(), &serde_json::Value::Null));
        assert_eq!(json["missed"], serde_json::json!(["invocation.writes", "contention.50.at_once.total"]));
    }
}
