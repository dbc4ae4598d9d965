//! A report as a picture: the median of each case as a bar, its 99th percentile as a mark.

use plotters::prelude::*;

use super::Failure;
use super::modes::Mode;
use super::report::{CaseReport, Report};
use super::stats::Summary;
use super::tables::time;

/// Pixels of the picture; a row is as high as a line of text needs.
const WIDTH: u32 = 900;
const ROW: u32 = 22;
const AROUND: u32 = 90;

/// What the time axis spans, in nanoseconds.
const FROM: f64 = 50.0;
const TO: f64 = 1e6;

/// The mode in which most slices were measured.
fn usual(report: &Report) -> Option<Mode> {
    let slices = |mode: &Mode| -> u32 { report.cases.iter().filter_map(|c| c.modes.get(mode)).map(|s| s.slices).sum() };
    report.modes_seen().into_iter().max_by_key(slices)
}

/// The picture as SVG.
pub(super) fn svg(report: &Report) -> Result<String, Failure> {
    let mode = usual(report).ok_or("nothing was measured")?;
    let rows: Vec<(&CaseReport, &Summary)> =
        report.cases.iter().filter_map(|case| Some((case, case.modes.get(&mode)?))).collect();
    let mut text = String::new();
    draw(&mut text, report, mode, &rows).map_err(|error| error.to_string())?;
    Ok(text)
}

fn draw(
    text: &mut String,
    report: &Report,
    mode: Mode,
    rows: &[(&CaseReport, &Summary)],
) -> Result<(), Box<dyn std::error::Error>> {
    let root = SVGBackend::with_string(text, (WIDTH, ROW * rows.len() as u32 + AROUND)).into_drawing_area();
    root.fill(&WHITE)?;
    // The first row is at the top.
    let place = |row: usize| (rows.len() - row) as f64;
    let mut chart = ChartBuilder::on(&root)
        .caption(format!("{}, {} CPUs, mode: {mode}; bar p50, mark p99", report.machine.cpu, report.machine.cpus), 16)
        .margin(8)
        .x_label_area_size(28)
        .y_label_area_size(330)
        .build_cartesian_2d((FROM..TO).log_scale(), 0.5..rows.len() as f64 + 0.5)?;
    let title = |at: &f64| {
        let row = rows.len().checked_sub(at.round() as usize).and_then(|row| rows.get(row));
        row.map_or_else(String::new, |(case, _)| case.title.clone())
    };
    chart
        .configure_mesh()
        .disable_y_mesh()
        .light_line_style(TRANSPARENT)
        .y_labels(2 * rows.len())
        .y_label_formatter(&title)
        .x_label_formatter(&|nanos| time(*nanos))
        .label_style(("sans-serif", 12))
        .draw()?;
    for (row, (case, summary)) in rows.iter().enumerate() {
        let at = place(row);
        let ours = !(case.id.starts_with("floor") || case.id.starts_with("iox") || case.id == "kernel_wake");
        let colour = if ours { RGBColor(40, 110, 180) } else { RGBColor(150, 150, 150) };
        let [p50, p99] = [summary.p50, summary.p99].map(|nanos| nanos.clamp(FROM, TO));
        let bar = Rectangle::new([(FROM, at - 0.32), (p50, at + 0.32)], colour.filled());
        let mark = PathElement::new([(p99, at - 0.32), (p99, at + 0.32)], colour.stroke_width(2));
        let value = Text::new(time(summary.p50), (p50 * 1.04, at + 0.28), ("sans-serif", 11));
        chart.draw_series([bar])?;
        chart.draw_series([mark])?;
        chart.draw_series([value])?;
    }
    root.present()?;
    Ok(())
}
