//! Results on stdout: tables for people, JSON and YAML for programs.

use std::io::{IsTerminal as _, Write as _};

use comfy_table::{Attribute, Cell, Color, Table, presets};
use serde::Serialize;

use crate::cli::Format;
use crate::error::Result;

/// What can be shown. Its serde form is stable; its table is not.
pub(crate) trait View: Serialize {
    /// For people, without a line end.
    fn table(&self, style: Style) -> String;
}

/// Writes a result to stdout.
pub(crate) fn write(format: Format, view: &impl View) -> Result<()> {
    let mut text = match format {
        Format::Table => view.table(Style::of_stdout()),
        Format::Json => serde_json::to_string_pretty(view)?,
        Format::Yaml => serde_norway::to_string(view)?,
    };
    if !text.ends_with('\n') {
        text.push('\n');
    }
    let mut stdout = std::io::stdout().lock();
    stdout.write_all(text.as_bytes())?;
    Ok(stdout.flush()?)
}

/// Is colour welcome?
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Style {
    pub(crate) colour: bool,
}

impl Style {
    /// On a terminal, unless <https://no-color.org> asks otherwise.
    fn of_stdout() -> Style {
        let unwanted = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
        Style { colour: !unwanted && std::io::stdout().is_terminal() }
    }
}

/// A value of a table, and how it is to be taken.
#[derive(Clone, Debug)]
pub(crate) enum Value {
    Plain(String),
    Good(String),
    Bad(String),
}

impl Value {
    fn cell(self, style: Style) -> Cell {
        let (text, colour) = match self {
            Value::Plain(text) => return Cell::new(text),
            Value::Good(text) => (text, Color::Green),
            Value::Bad(text) => (text, Color::Red),
        };
        if style.colour { Cell::new(text).fg(colour) } else { Cell::new(text) }
    }
}

impl<T: ToString> From<T> for Value {
    fn from(value: T) -> Value {
        Value::Plain(value.to_string())
    }
}

/// Rows under a header; `empty` in its place if there are none.
pub(crate) fn grid<const N: usize>(
    style: Style,
    header: [&str; N],
    rows: impl IntoIterator<Item = [Value; N]>,
    empty: &str,
) -> String {
    let mut table = blank(style);
    let mut header: Vec<Cell> = header.into_iter().map(Cell::new).collect();
    if style.colour {
        header = header.into_iter().map(|cell| cell.add_attribute(Attribute::Bold)).collect();
    }
    table.set_header(header);
    table.add_rows(rows.into_iter().map(|row| row.map(|value| value.cell(style))));
    if table.is_empty() { empty.to_owned() } else { finish(table) }
}

/// Names and their values, a line each.
pub(crate) fn fields(
    style: Style,
    rows: impl IntoIterator<Item = (&'static str, Value)>,
) -> String {
    let mut table = blank(style);
    for (name, value) in rows {
        let name = Cell::new(name);
        let name = if style.colour { name.add_attribute(Attribute::Bold) } else { name };
        table.add_row([name, value.cell(style)]);
    }
    finish(table)
}

fn blank(style: Style) -> Table {
    let mut table = Table::new();
    table.load_preset(presets::NOTHING);
    if style.colour {
        table.enforce_styling();
    } else {
        table.force_no_tty();
    }
    table
}

fn finish(mut table: Table) -> String {
    for column in table.column_iter_mut() {
        column.set_padding((0, 2));
    }
    table.trim_fmt()
}
